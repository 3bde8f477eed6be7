import type { Tenant } from '../../postgres/tenancy.ts'
import type { HeldRun, Outcome } from './held.ts'

/**
 * A run waits for the end of a cancelled run with the same key. The caller sees a new run at once, but two runs of a key
 * never execute nodes at the same time.
 */

/** The end of the predecessor wakes a run. The run also looks after this time, in case the wake-up was lost. */
const AGAIN_MS = 60_000

/** Holds the runs whose predecessor is open. @returns the runs that go on. */
export function awaitPredecessors(
  runs: readonly HeldRun[],
  now: number,
  outcomes: Map<string, Outcome>,
): HeldRun[] {
  return runs.filter(({ id, follows_open }) => {
    if (!follows_open || outcomes.has(id)) return true
    outcomes.set(id, { kind: 'hold', hold: 'predecessor', until: now + AGAIN_MS })
    return false
  })
}

/** After the end of a run whose cancellation was requested: the run that waits for it is decided about. */
export async function wakeFollowers(tx: Tenant, runId: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update runs set hold_until = now()
     where organization_id = ? and follows = ? and status = 'queued' and hold = 'predecessor'`,
    [tx.organizationId, runId],
  )
  if (rowCount > 0) tx.wake('agx_runs')
}
