import { IMPORT_COLUMNS, type ImportRow } from '../../imports/imports.ts'
import type { ImportStatus } from '../../model/files/statuses.ts'
import { since } from '../../model/work-end.ts'
import type { Tenant } from '../../postgres/tenancy.ts'

/**
 * Status changes of an import by users and its workflow; the table is in `db/model/files/statuses.ts`. Callers hold the
 * row's lock (`lockImport`). Each returns the updated import, and throws if its status does not allow the move.
 */

type Values = Partial<Record<Exclude<keyof ImportRow, 'status'>, unknown>>

/** Assigns the uploaded file. `values` are its columns. */
export const markImportReady = (tx: Tenant, id: string, values: Values): Promise<ImportRow> =>
  move(tx, id, ['created', 'ready', 'stopped', 'completed', 'failed'], { ...values, status: 'ready' })

/** Queues the next start and wakes the relay. */
export async function queueImport(tx: Tenant, { id, starts }: ImportRow, values: Values): Promise<ImportRow> {
  const queued = await move(tx, id, ['ready', 'stopped', 'completed', 'failed'], {
    ...values,
    status: 'queued',
    starts: starts + 1,
    lease_until: null,
  })
  tx.wake('agx_files')
  return queued
}

/** Records that its workflow has started. */
export const beginImport = (tx: Tenant, { id, started_at }: ImportRow): Promise<ImportRow> =>
  move(tx, id, ['queued'], {
    status: 'running',
    started_at: started_at ?? tx.trx.fn.now(),
    lease_until: null,
  })

/** Records the progress and, with `end`, the end. */
export const recordImportProgress = (
  tx: Tenant,
  id: string,
  progress: Values,
  end?: { status: 'completed' } | { status: 'failed'; error: NonNullable<ImportRow['error']> },
): Promise<ImportRow> =>
  move(tx, id, ['running'], {
    ...progress,
    ...(end ? { ended_at: tx.trx.fn.now() } : {}),
    ...(end && 'error' in end ? { error: JSON.stringify(end.error) } : {}),
    status: end?.status ?? 'running',
  })

/** Stops the import; its workflow ends before its next transaction. */
export const stopImport = (tx: Tenant, id: string): Promise<ImportRow> =>
  move(tx, id, ['queued', 'running'], { status: 'stopped', ended_at: tx.trx.fn.now(), lease_until: null })

async function move(
  tx: Tenant,
  id: string,
  from: ImportStatus[],
  values: Values & { status: ImportStatus; lease_until?: null },
): Promise<ImportRow> {
  const [row] = await tx
    .trx('imports')
    .where({ organization_id: tx.organizationId, id })
    .whereIn('status', from)
    .update({ ...values, updated_at: tx.trx.fn.now() })
    .returning<ImportRow[]>(IMPORT_COLUMNS)
  if (!row) throw new Error(`import ${id} is not ${from.join(' or ')}: it cannot become ${values.status}`)
  if (values.ended_at)
    tx.ends.push({
      work: 'import',
      status: row.status,
      organization_id: tx.organizationId,
      ms: since(row.started_at ?? row.created_at),
      of: {
        import_id: id,
        rows_read: row.rows_read,
        rows_created: row.rows_created,
        rows_updated: row.rows_updated,
        rows_skipped: row.rows_skipped,
        rows_failed: row.rows_failed,
      },
    })
  return row
}
