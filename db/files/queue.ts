import { claimAlone } from '../postgres/queue-lock.ts'
import type { System } from '../postgres/tenancy.ts'
import type { FileStart, FileTable } from './moves/queue.ts'

/** What the relay and the sweep read of imports and exports; `moves/` has what they change of a status. */

const LEASE_SECONDS = 30
/** Running at once, of each organization and table: a file takes as much of the database as it can get. */
const AT_ONCE = 2

/** An import or export that was claimed. */
export interface ClaimedFile extends FileStart {
  entity: string
}

/** Leases up to `limit` queued files, the oldest of each organization first, as long as it has a free slot. */
export const claimFiles = (system: System, table: FileTable, limit: number): Promise<ClaimedFile[]> =>
  claimAlone(
    system,
    table,
    `with organizations as (select distinct organization_id from ${table} where status = 'queued'),
     candidates as (
       select q.* from organizations o cross join lateral (
         select f.organization_id, f.id, f.lease_until,
           row_number() over (order by f.id) + (
             select count(*) from ${table} b where b.organization_id = o.organization_id and b.status = 'running'
           ) as place
         from ${table} f
         where f.organization_id = o.organization_id and f.status = 'queued'
         order by f.id limit :atOnce) q
       where q.place <= :atOnce and (q.lease_until is null or q.lease_until < now()))
     update ${table} f set lease_until = now() + make_interval(secs => :lease)
     from (select * from candidates order by place limit :limit) c
     where f.organization_id = c.organization_id and f.id = c.id and f.status = 'queued'
     returning f.organization_id, f.id, f.entity, f.starts`,
    { atOnce: AT_ONCE, lease: LEASE_SECONDS, limit },
  )

/** Up to `limit` running files that have been untouched for `idle` (a PostgreSQL interval), the longest first. */
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
