import { insertEvents } from '../events/outbox.ts'
import { type EventRun, lateEvent } from '../model/runs/run-event.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { belowRun } from '../process/traces/runs.ts'

/**
 * Late runs: those that are open after the `expected_within` of their version, counted from their creation. One query of
 * the relay finds them, so a run costs no timer, and one that became late while no worker lived is found after: also if it
 * has ended since.
 */

/** SQL: whether the run is late and nobody was told. Has the condition of a partial index. */
const UNTOLD = `expected_by < now() and late_at is null and (ended_at is null or ended_at > expected_by)`

/** Up to `limit` runs that became late, by organization. */
export async function listLate(
  system: System,
  limit: number,
): Promise<{ organization_id: string; ids: string[] }[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string; ids: string[] }[] }>(
    `select organization_id, array_agg(id) as ids from (
       select organization_id, id from runs where ${UNTOLD} order by expected_by limit ?) r
     group by organization_id`,
    [limit],
  )
  return rows
}

/** Raises `workflow.late`, once for each run. A locked row is skipped: it is late the next time, too. */
export async function raiseLate(tx: Tenant, ids: string[]): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { run: EventRun & { trace_id?: string } }[] }>(
    `with late as (
       select organization_id, id from runs where organization_id = :organizationId and id = any(cast(:ids as uuid[]))
         and ${UNTOLD} order by id for no key update skip locked)
     update runs r set late_at = now() from late
     where r.organization_id = late.organization_id and r.id = late.id
     returning to_jsonb(r) - 'outputs' - 'error' as run`,
    { organizationId: tx.organizationId, ids },
  )
  for (const { run } of rows) await insertEvents(belowRun(tx, run), [lateEvent(run)])
}
