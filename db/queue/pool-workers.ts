import type { System } from '../postgres/tenancy.ts'

/**
 * The workers of pools, which report here that they poll. Temporal's own list is no evidence: it names a poller for
 * minutes after its death, omits one whose slots are all taken, and is empty after a restart of Temporal.
 */

/** A worker that was not seen for so long is dead. */
const LIVE_SECONDS = 10

/** SQL: a worker that was seen after this time is alive. */
const LIVE_SINCE = `now() - interval '${LIVE_SECONDS} seconds'`

/** How often a worker reports, in milliseconds. */
export const POOL_BEAT_MS = 2_000

/** Reports that a worker of a pool polls. Only the last of a pool's ended workers stays. */
export async function seePoolWorker(system: System, worker: { id: string; pool: string }): Promise<void> {
  await system.raw(
    `with gone as (
       delete from pool_workers w where seen_at < ${LIVE_SINCE}
         and exists (select from pool_workers later where later.pool = w.pool and later.seen_at > w.seen_at))
     insert into pool_workers (id, pool, seen_at) values (:id, :pool, now())
     on conflict (id) do update set seen_at = excluded.seen_at`,
    worker,
  )
}

/** Reports the end of a worker. */
export async function endPoolWorker(system: System, { id }: { id: string }): Promise<void> {
  await system('pool_workers')
    .where({ id })
    .update({ seen_at: system.raw(`least(seen_at, ${LIVE_SINCE})`) })
}

/** A pool, as its workers report it. */
export interface ReportedPool {
  pool: string
  /** The number of live workers. */
  workers: number
  /** When a worker of it was last alive. */
  seen_at: Date
}

/** The pools that have, or had, a worker. */
export async function listReportedPools(system: System): Promise<ReportedPool[]> {
  const { rows } = await system.raw<{ rows: ReportedPool[] }>(
    `select pool, cast(count(*) filter (where seen_at > ${LIVE_SINCE}) as integer) as workers, max(seen_at) as seen_at
     from pool_workers group by pool order by pool`,
  )
  return rows
}

/** Every pool that an organization may use, or that has a live worker, with the number of its live workers. */
export async function countPoolWorkers(system: System): Promise<Pick<ReportedPool, 'pool' | 'workers'>[]> {
  const { rows } = await system.raw<{ rows: Pick<ReportedPool, 'pool' | 'workers'>[] }>(
    `select pool, cast(count(w.id) as integer) as workers
     from (select unnest(pools) as pool from organizations where pools <> '{}'
       union select pool from pool_workers where seen_at > ${LIVE_SINCE}) known
     left join (select id, pool from pool_workers where seen_at > ${LIVE_SINCE}) w using (pool)
     group by pool order by pool`,
  )
  return rows
}

/** Whether a worker of the pool is alive. */
export async function hasPoolWorker(system: System, pool: string): Promise<boolean> {
  const row = await system('pool_workers').where({ pool }).whereRaw(`seen_at > ${LIVE_SINCE}`).first('id')
  return row !== undefined
}
