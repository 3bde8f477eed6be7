import { since } from '../../model/work-end.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'

/** Status changes of imports and exports by the relay and the sweep; the tables are in `db/model/files/statuses.ts`. */

export type FileTable = 'imports' | 'exports' | 'knowledge_embeddings'

/** By what log lines name a row of each: an embedding has the id of its collection. */
export const FILE_IDS = {
  imports: 'import_id',
  exports: 'export_id',
  knowledge_embeddings: 'collection_id',
} as const satisfies Record<FileTable, string>

/** A start of an import or export; each start is a separate workflow. */
export interface FileStart {
  organization_id: string
  id: string
  starts: number
}

/** @returns the number of files that changed from queued to running. */
export function markFilesStarted(system: System, table: FileTable, files: FileStart[]): Promise<number> {
  return system(table)
    .whereIn(
      ['organization_id', 'id', 'starts'],
      files.map(({ organization_id, id, starts }) => [organization_id, id, starts]),
    )
    .andWhere('status', 'queued')
    .update({ status: 'running', started_at: system.raw('coalesce(started_at, now())'), lease_until: null })
}

/** Fails a file whose start Temporal rejected with `reason`. @returns whether it was queued. */
export async function failFileStart(
  tx: Tenant,
  table: FileTable,
  { id, starts }: FileStart,
  reason: string,
): Promise<boolean> {
  const failed: { created_at: Date }[] = await tx
    .trx(table)
    .where({ organization_id: tx.organizationId, id, starts, status: 'queued' })
    .update({
      status: 'failed',
      error: JSON.stringify({ message: reason.slice(0, 1_000) }),
      ended_at: tx.trx.fn.now(),
      lease_until: null,
    })
    .returning('created_at')
  const { organizationId: organization_id } = tx
  for (const { created_at } of failed)
    tx.ends.push({
      work: WORK[table],
      status: 'failed',
      organization_id,
      ms: since(created_at),
      of: { [FILE_IDS[table]]: id },
    })
  return failed.length > 0
}

const WORK = { imports: 'import', exports: 'export', knowledge_embeddings: 'embedding' } as const

/** An import can be resumed; an export is created again; the next change of a passage queues an embedding. */
const AFTER_LOSS = { imports: 'stopped', exports: 'failed', knowledge_embeddings: 'failed' } as const

/** Ends a file whose workflow has ended without recording it. @returns whether it was running. */
export async function endUnrecordedFile(
  system: System,
  table: FileTable,
  { organization_id, id, starts }: FileStart,
  message: string,
): Promise<boolean> {
  const count = await system(table)
    .where({ organization_id, id, starts, status: 'running' })
    .update({
      status: AFTER_LOSS[table],
      error: JSON.stringify({ message }),
      ended_at: system.fn.now(),
    })
  return count > 0
}
