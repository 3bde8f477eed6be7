import type { RunError, RunNode, RunState } from '../../../workflows/interpret/run-state.ts'
import type { EndStatus, RunStatus } from '../../../workflows/shared/statuses.ts'
import { insertEvents } from '../../events/outbox.ts'
import { runEvent } from '../../model/runs/run-event.ts'
import { isOpenRun } from '../../model/runs/statuses.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { belowRun, reportRunEnd } from '../../process/traces/runs.ts'
import { answerParent, listAwaited } from '../children.ts'
import { startErrorWorkflow } from '../error-workflow.ts'
import { wakeNext } from '../holds/key-slots.ts'
import { wakeFollowers } from '../holds/predecessors.ts'
import { closeWaits, expireWaits } from '../waits.ts'
import { AT_REST, HELD, lockStatus, NEVER_CLAIMED } from './lock-status.ts'
import { unpauseRun } from './pauses.ts'

/** The ends of runs outside of a segment, and the effects of every end. The table is in `db/model/runs/statuses.ts`. */

/**
 * Cancels a run or requests its cancellation: a run without a workflow ends at once, a running one when Temporal has
 * cancelled its workflow. An ended run stays unchanged. @returns its new status. Throws `not_found`.
 * @param reason the message of the run's error, if no caller requested the cancellation.
 */
export async function cancelRun(tx: Tenant, id: string, reason: string | null = null): Promise<RunStatus> {
  const before = await lockStatus(tx, id)
  if (!isOpenRun(before)) return before
  if (await cleansUp(tx, id)) await unpauseRun(tx, id)
  const { rows } = await tx.trx.raw<{ rows: Ended[] }>(
    `update runs set
       cancel_requested_at = coalesce(cancel_requested_at, now()), cancel_reason = coalesce(cancel_reason, :reason),
       checked = false,
       -- one that waits for a workflow, in which it is then cancelled: before those that only sleep
       priority = case when status = 'queued' then 0 else priority end,
       -- one that was held after a pause: it is claimed, and then cancelled
       hold = null, hold_until = null,
       -- a run that a relay has claimed counts as running
       status = case when ${AT_REST} then 'cancelled' else status end,
       ended_at = case when ${AT_REST} then now() end,
       error = case when ${AT_REST} and cast(:reason as text) is not null
         then jsonb_build_object('code', 'cancelled', 'message', cast(:reason as text)) end,
       updated_at = now()
     where organization_id = :organizationId and id = :id
     returning ${ENDED}`,
    { organizationId: tx.organizationId, id, reason },
  )
  const { run } = rows[0]!
  if (run.status !== 'cancelled') tx.wake('agx_cancels')
  else await afterEnd(tx, run, 'cancelled')
  return run.status
}

/** Requests the cancellation of a run whose segment in progress, which holds its lock, then ends it. */
export async function requestCancel(tx: Tenant, id: string, reason: string): Promise<void> {
  await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id })
    .update({ cancel_requested_at: tx.trx.raw('now()'), cancel_reason: reason })
}

/** Whether the run has begun, and its version has cleanup nodes: they need a workflow, and no pause keeps them back. */
async function cleansUp(tx: Tenant, id: string): Promise<boolean> {
  const { rows } = await tx.trx.raw<{ rows: unknown[] }>(
    `select from runs r join workflow_versions v on v.organization_id = r.organization_id
       and v.workflow_id = r.workflow_id and v.version = r.workflow_version
     where r.organization_id = ? and r.id = ? and r.temporal_run_id is not null and v.has_cleanup`,
    [tx.organizationId, id],
  )
  return rows.length > 0
}

/**
 * Ends a run at once, without its cleanup nodes; the relay then terminates its workflow. @returns false if it had already
 * ended. Throws `not_found`.
 */
export async function terminateRun(tx: Tenant, id: string): Promise<boolean> {
  await lockStatus(tx, id)
  return endRun(tx, id, {
    where: `kind = 'run' and status in ('queued', 'running', 'paused')`,
    bindings: {},
    status: 'terminated',
    error: { code: 'terminated', message: 'The run was terminated.' },
    terminates: true,
  })
}

/**
 * Ends a queued run that the settings of its workflow exclude, by default its concurrency limit. @returns whether it was
 * queued and unclaimed.
 */
export async function skipRun(
  tx: Tenant,
  id: string,
  reason: string,
  code = 'concurrency_limit',
): Promise<boolean> {
  await lockStatus(tx, id)
  const { rows } = await tx.trx.raw<{ rows: Ended[] }>(
    `update runs set status = 'skipped', ended_at = now(), updated_at = now(),
       error = jsonb_build_object('code', cast(:code as text), 'message', cast(:reason as text))
     where organization_id = :organizationId and id = :id and (${HELD} or ${NEVER_CLAIMED})
     returning ${ENDED}`,
    { organizationId: tx.organizationId, id, reason, code },
  )
  if (rows[0]) await afterEnd(tx, rows[0].run, 'skipped')
  return rows[0] !== undefined
}

/** Fails a run whose start Temporal rejected with `reason`. @returns whether it was queued. */
export const failRunStart = (tx: Tenant, id: string, reason: string): Promise<boolean> =>
  endRun(tx, id, {
    where: `status = 'queued'`,
    bindings: {},
    status: 'failed',
    error: { code: 'start_refused', message: reason.slice(0, 1_000) },
  })

/** Fails a held run whose key cannot be used. @returns whether it was held. */
export const failHeldRun = (tx: Tenant, id: string, error: RunError): Promise<boolean> =>
  endRun(tx, id, { where: `status = 'queued' and hold is not null`, bindings: {}, status: 'failed', error })

/**
 * Ends a run whose workflow has ended without recording it. `temporalRunId` is the Temporal run that was looked up.
 * `terminates`: its workflow is still open, and the relay terminates it.
 * @returns false if the run has ended, or if another Temporal run owns it after a reset.
 */
export const endUnrecordedRun = (
  tx: Tenant,
  id: string,
  temporalRunId: string | null,
  status: Exclude<EndStatus, 'completed'>,
  error: RunError,
  { terminates = false }: { terminates?: boolean } = {},
): Promise<boolean> =>
  endRun(tx, id, {
    where: `status = 'running' and temporal_run_id is not distinct from :temporalRunId`,
    bindings: { temporalRunId },
    status,
    error,
    terminates,
  })

type Ended = Pick<RunState, 'run'>

/** SQL: the ended run, for RETURNING. */
const ENDED = `to_jsonb(runs) - 'outputs' - 'error' as run`

/** SQL: has the relay terminate the workflow of the run. */
const TERMINATES = `, workflow_command = case when not (${NEVER_CLAIMED}) then 'terminate' end, workflow_command_at = now(),
      workflow_command_lease_until = null`

async function endRun(
  tx: Tenant,
  id: string,
  move: {
    where: string
    bindings: Record<string, string | null>
    status: EndStatus
    error: RunError
    /** Whether the relay terminates its workflow, if it may have one. */
    terminates?: boolean
  },
): Promise<boolean> {
  const { status } = move
  const organization_id = tx.organizationId
  const { rows } = await tx.trx.raw<{ rows: Ended[] }>(
    `update runs set status = :status, error = :error, ended_at = now(), updated_at = now(),
       node = node - 'sealed'${move.terminates ? TERMINATES : ''}
     where organization_id = :organizationId and id = :id and ${move.where}
     returning ${ENDED}`,
    { ...move.bindings, organizationId: organization_id, id, status, error: JSON.stringify(move.error) },
  )
  const run = rows[0]?.run
  if (!run) return false
  const error = isWanted(status) ? move.error : await startErrorWorkflow(tx, run, move)
  if (error !== move.error)
    await tx
      .trx('runs')
      .where({ organization_id, id })
      .update({ error: JSON.stringify(error) })
  if (run.kind === 'run' && !isWanted(status))
    await insertEvents(belowRun(tx, run), [runEvent(run, status, { error })])
  await afterEnd(tx, run, status)
  if (move.terminates) tx.wake('agx_run_commands')
  // A slot is free.
  tx.wake('agx_runs')
  return true
}

/**
 * Whether somebody ended the run on purpose: that is no failure, so no event tells of it and no error workflow starts.
 */
const isWanted = (status: EndStatus) => status === 'cancelled' || status === 'terminated'

/** The effects of the end of a run outside of a segment. */
async function afterEnd(tx: Tenant, run: Ended['run'], status: EndStatus): Promise<void> {
  reportRunEnd(tx, run, status)
  await tx
    .trx('run_nodes')
    .where({ organization_id: tx.organizationId, run_id: run.id })
    .whereIn('status', ['running', 'waiting'])
    .update({ status: 'cancelled', ended_at: tx.trx.fn.now() })
  await tx
    .trx('run_iterations')
    .where({ organization_id: tx.organizationId, run_id: run.id, settled_segment: null })
    .update({ status: 'cancelled', ended_at: tx.trx.fn.now() })
  await tx
    .trx('run_loops')
    .where({ organization_id: tx.organizationId, run_id: run.id, open: true })
    .update({ open: false })
  await endFamily(tx, run)
  tx.wake('agx_run_ended', run.id)
  tx.wake('agx_run_changed', run.id)
}

/**
 * After the end of a run: cancels the children for which its nodes waited, closes its other waits, and answers its
 * parent, the next run of its key, and the run that follows it. Locks are taken from parent to child; a child writes
 * only the wait of its parent.
 */
export async function endFamily(
  tx: Tenant,
  run: Pick<RunState['run'], 'id' | 'parent_run_id' | 'concurrency_key' | 'run_key' | 'cancel_requested_at'>,
): Promise<void> {
  for (const child of await listAwaited(tx, run.id)) await cancelRun(tx, child)
  await closeWaits(tx, run.id)
  if (run.parent_run_id !== null) await answerParent(tx, run.id)
  if (run.concurrency_key) await wakeNext(tx, run.concurrency_key)
  if (mayBeFollowed(run)) await wakeFollowers(tx, run.id)
}

/** Whether a run with its key may wait for its end. */
export const mayBeFollowed = (run: Pick<RunState['run'], 'run_key' | 'cancel_requested_at'>): boolean =>
  Boolean(run.run_key) && run.cancel_requested_at !== null

/**
 * After nodes of a continuing run were cancelled: cancels the children for which they waited, and closes their other
 * waits.
 */
export async function cancelWaits(
  tx: Tenant,
  runId: string,
  nodes: Pick<RunNode, 'path' | 'node_id'>[],
): Promise<void> {
  for (const child of await listAwaited(tx, runId, nodes)) await cancelRun(tx, child)
  await expireWaits(tx, runId, nodes)
}
