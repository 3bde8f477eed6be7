import { runEvent } from '../activities/run-event.ts'
import { insertEvents } from '../db/events/outbox.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import type { RunError, RunState } from '../workflows/interpret/run-state.ts'
import type { EndStatus } from '../workflows/interpret/statuses.ts'

/** Records the end of a run, locked by `lockRun`, that will never record it itself, and raises its event. */
export async function recordEnd(
  tx: Tenant,
  { run }: RunState,
  status: EndStatus,
  error: RunError,
): Promise<void> {
  const now = tx.trx.fn.now()
  const organization_id = tx.organizationId
  await tx
    .trx('run_nodes')
    .where({ organization_id, run_id: run.id })
    .whereIn('status', ['running', 'waiting'])
    .update({ status: 'cancelled', ended_at: now })
  await tx
    .trx('runs')
    .where({ organization_id, id: run.id })
    .update({ status, error: JSON.stringify(error), ended_at: now, updated_at: now, lease_until: null })
  if (run.kind === 'run' && status !== 'cancelled') await insertEvents(tx, [runEvent(run, status, { error })])
  tx.wake('agx_run_ended', run.id)
  // Its slot is free.
  tx.wake('agx_runs')
}
