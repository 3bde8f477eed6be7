import { eventRows, insertEventRows } from '../events/outbox.ts'
import { type EventRun, lateEvent } from '../model/runs/run-event.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { belowRun } from '../process/traces/runs.ts'
import { listDueRows } from '../queue/due-rows.ts'

/**
 * Late runs: those that are open after the `expected_within` of their version, counted from their creation. One query of
 * the relay finds them, so a run costs no timer, and one that became late while no worker lived is found after: also if
 * it has ended since.
 */

/** SQL: whether the run will be late, or is, and nobody was told. The condition of a partial index. */
const TO_TELL = `expected_by is not null and late_at is null and (ended_at is null or ended_at > expected_by)`
/** SQL: whether the run is late and nobody was told. */
const UNTOLD = `expected_by < now() and ${TO_TELL}`

/** Up to `limit` runs that became late, by organization; organizations take turns, each with its oldest first. */
export const listLate = (system: System, limit: number) =>
  listDueRows(system, { table: 'runs', at: 'expected_by', waits: TO_TELL, due: UNTOLD }, limit)

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
  if (rows.length > 0)
    await insertEventRows(
      tx,
      rows.flatMap(({ run }) => eventRows(belowRun(tx, run), [lateEvent(run)])),
    )
}
