import type { System } from '../postgres/tenancy.ts'
import { isUnleased } from '../queue/lease.ts'
import { claimAlone, HAS_LOCK } from '../queue/queue-lock.ts'
import type { FileStart, FileTable } from './moves/queue.ts'

/** Queries of the relay and the sweep on imports and exports; `moves/` has the status changes. */

const LEASE_SECONDS = 30
/**
 * Slots per organization and table. The number is low, because a running file puts the maximum load on the database.
 */
const SLOTS = 2

/** A claimed import or export. */
export interface ClaimedFile extends FileStart {
  entity: string
}

/** Leases up to `limit` queued files of organizations with a free slot, oldest file of each organization first. */
export const claimFiles = (system: System, table: FileTable, limit: number): Promise<ClaimedFile[]> =>
  claimAlone(
    system,
    table,
    `with organizations as (select distinct organization_id from ${table} where status = 'queued' and ${HAS_LOCK}),
     candidates as (
       select q.* from organizations o cross join lateral (
         select f.organization_id, f.id, f.lease_until,
           row_number() over (order by f.id) + (
             select count(*) from ${table} b where b.organization_id = o.organization_id and b.status = 'running'
           ) as place
         from ${table} f
         where f.organization_id = o.organization_id and f.status = 'queued'
         order by f.id limit :slots) q
       where q.place <= :slots and ${isUnleased('q.lease_until')})
     update ${table} f set lease_until = now() + make_interval(secs => :lease)
     from (select * from candidates order by place limit :limit) c
     where f.organization_id = c.organization_id and f.id = c.id and f.status = 'queued'
     returning f.organization_id, f.id, f.entity, f.starts`,
    { slots: SLOTS, lease: LEASE_SECONDS, limit },
  )

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
