import type { RunStatus } from '../../../workflows/shared/statuses.ts'
import { conflict } from '../../model/errors.ts'
import { isOpenRun } from '../../model/runs/statuses.ts'
import type { Tenant } from '../../postgres/tenancy.ts'
import { lockStatus, UNCLAIMED } from './lock-status.ts'

/** Pauses of runs; the table is in `db/model/runs/statuses.ts`. */

/**
 * Pauses a run, or requests its pause: no further node starts, attempts in progress end and are recorded, and then the
 * run is paused. A run whose cancellation was requested is not paused before it is applied: the cancellation holds.
 * @returns its new status. Throws `not_found`, `conflict` for a run that has ended.
 */
export async function pauseRun(tx: Tenant, id: string): Promise<RunStatus> {
  const before = await lockStatus(tx, id)
  if (before === 'paused') return before
  if (!isOpenRun(before)) throw hasEnded(before, 'paused')
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus }[] }>(
    `update runs set status = case when ${UNCLAIMED} then 'paused' else status end,
       paused_at = case when ${UNCLAIMED} then now() end,
       pause_requested_at = coalesce(pause_requested_at, now()), updated_at = now(), checked = false,
       ${refreshUnless(UNCLAIMED)}
     where organization_id = ? and id = ? and (cancel_requested_at is null or ending is not null) returning status`,
    [tx.organizationId, id],
  )
  if (!rows[0]) return before
  tx.wake('agx_run_commands')
  tx.wake('agx_run_changed', id)
  return rows[0].status
}

/**
 * Resumes a paused run: the relay starts a new workflow where it stopped, when a slot is free. Withdraws a pause that
 * was only requested. Any other open run stays unchanged. @returns its new status. Throws the errors of `pauseRun`.
 */
export async function unpauseRun(tx: Tenant, id: string): Promise<RunStatus> {
  const before = await lockStatus(tx, id)
  if (!isOpenRun(before)) throw hasEnded(before, 'resumed')
  const { rows } = await tx.trx.raw<{ rows: { status: RunStatus }[] }>(
    `update runs set status = case when status = 'paused' then 'queued' else status end,
       resumes = resumes + case when status = 'paused' then 1 else 0 end,
       pauses = pauses + case when status = 'paused' then 1 else 0 end,
       paused_ms = paused_ms + case when status = 'paused' and started_at is not null
         then coalesce(extract(epoch from now() - greatest(paused_at, started_at)) * 1000, 0) else 0 end,
       -- the end of the run that has its key may have come in the pause
       hold_until = case when status = 'paused' and hold = 'key' then now() else hold_until end,
       pause_requested_at = null, paused_at = null, updated_at = now(), ${refreshUnless("status = 'paused'")}
     where organization_id = ? and id = ? and pause_requested_at is not null
     returning status`,
    [tx.organizationId, id],
  )
  if (!rows[0]) return before
  if (before === 'paused')
    await tx.trx('run_claims').where({ organization_id: tx.organizationId, run_id: id }).delete()
  tx.wake('agx_runs')
  tx.wake('agx_run_commands')
  tx.wake('agx_run_changed', id)
  return rows[0].status
}

/** SQL: makes the relay refresh the workflow, unless the run is `atRest` and has no workflow. */
export const refreshUnless = (
  atRest: string,
) => `workflow_command = case when ${atRest} then null else 'refresh' end,
  workflow_command_at = clock_timestamp(), workflow_command_lease_until = null`

const hasEnded = (status: RunStatus, what: string) =>
  conflict(`the run is ${status}: a run that has ended cannot be ${what}`)
