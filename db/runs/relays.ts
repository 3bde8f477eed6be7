import { ENGINE } from '../../workflows/nodes/engine.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { activeRuns } from './admission.ts'

/**
 * The relays of all workers, one each. A relay that has not been seen for some seconds is dead: others take what it has
 * of runs (`claims.ts`) and of deliveries (`db/outgoing/interrupted.ts`). Its row stays for a minute.
 */

/** A relay, and what its worker can carry. */
export interface RelayCapacity {
  id: string
  /** The limit of its runs in their first segment. */
  starts: number
  /** The limit of active runs per worker; the sum over all live relays counts. */
  active: number
}

/** SQL: a relay that was seen after this time is alive. Five seconds are five missed heartbeats. */
export const LIVE_SINCE = `now() - interval '5 seconds'`

/** SQL: whether the relay that `column` names is alive. */
export const isLive = (column: string): string => `exists (
  select from relays alive where alive.id = ${column} and alive.seen_at > ${LIVE_SINCE})`

/** Reports that a relay is alive. @returns the share of the capacity of all workers that is in use. */
export async function seeRelay(system: System, { id, active }: RelayCapacity): Promise<number> {
  await system.raw(
    `with dead as (delete from relays where seen_at < now() - interval '1 minute')
     insert into relays (id, active, engine, seen_at) values (?, ?, ?, now())
     on conflict (id) do update set active = excluded.active, seen_at = excluded.seen_at`,
    [id, active, ENGINE],
  )
  const { rows } = await system.raw<{ rows: { used: number }[] }>(
    `select ((select count(*) from run_claims where retry_at is null) +
         ${activeRuns('capacity')})::float8 / capacity as used
     from (select greatest(1, coalesce(sum(active), 0)) as capacity from relays where seen_at > ${LIVE_SINCE}) c`,
  )
  return rows[0]?.used ?? 0
}

/** Ends a relay, which is dead from then on. */
export async function endRelay(system: System, { id }: Pick<RelayCapacity, 'id'>): Promise<void> {
  await system('relays')
    .where({ id })
    .update({ seen_at: system.raw(`${LIVE_SINCE} - interval '1 second'`) })
}

/** What all live workers, and this process, can run. */
export async function leastEngine({ trx }: Tenant): Promise<number> {
  const { rows } = await trx.raw<{ rows: { engine: number }[] }>(
    `select least(min(engine), ${ENGINE}) as engine from relays where seen_at > ${LIVE_SINCE}`,
  )
  return rows[0]!.engine
}
