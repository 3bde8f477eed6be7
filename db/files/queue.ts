import type { System } from '../postgres/tenancy.ts'
import { defineQueue } from '../queue/queue.ts'
import type { FileStart, FileTable } from './moves/queue.ts'

/** Queries of the relay and the sweep on imports and exports; `moves/` has the status changes. */

/** Slots per organization and table; `FILES_AT_ONCE` of worker/workers.ts leaves others room. Few, because a running file puts the maximum load on the database. */
export const FILE_SLOTS = 2

/** A claimed import or export. */
export interface ClaimedFile extends FileStart {
  /** The kind of its records, or the model of an embedding. */
  subject: string
}

const queueOf = (table: FileTable, subject = 'entity') =>
  defineQueue<ClaimedFile>({
    table,
    key: ['organization_id', 'id'],
    waits: "status = 'queued'",
    order: 'id',
    returning: [`${subject} as subject`, 'starts'],
    seconds: 30,
    turns: {
      slots: FILE_SLOTS,
      occupied: `(select count(*) from ${table} b
        where b.organization_id = o.organization_id and b.status = 'running')`,
    },
  })

/** Queued imports, and queued exports, of organizations with a free slot. */
export const queuedFiles = {
  imports: queueOf('imports'),
  exports: queueOf('exports'),
  knowledge_embeddings: queueOf('knowledge_embeddings', 'model'),
}

/** Up to `limit` running files without a write for `idle` (a PostgreSQL interval), longest idle first. */
export async function listIdleFiles(
  system: System,
  table: FileTable,
  idle: string,
  limit: number,
): Promise<FileStart[]> {
  const { rows } = await system.raw<{ rows: FileStart[] }>(
    `select organization_id, id, starts from ${table}
     where status = 'running' and updated_at < now() - cast(? as interval) order by updated_at limit ?`,
    [idle, limit],
  )
  return rows
}

/** The running files among `starts`. */
export async function listOpenFiles(
  system: System,
  table: FileTable,
  starts: FileStart[],
): Promise<FileStart[]> {
  const { rows } = await system.raw<{ rows: FileStart[] }>(
    `select f.organization_id, f.id, f.starts
     from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, starts integer)
     join ${table} f on f.organization_id = s.organization_id and f.id = s.id and f.starts = s.starts
     where f.status = 'running'`,
    [JSON.stringify(starts)],
  )
  return rows
}
