import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { NO_SLOT } from '../../activities/slots/node-turns.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import { readLostAt } from '../../db/queue/witness.ts'
import { endUnrecordedRun } from '../../db/runs/moves/ends.ts'
import { MAX_RESUMES, resumeRuns } from '../../db/runs/moves/starts.ts'
import {
  type CheckedRun,
  type IdleRun,
  listIdleRuns,
  listUnverifiedRuns,
  markRunsChecked,
} from '../../db/runs/queue.ts'
import { REFRESH } from '../../workflows/bundle/protocol.ts'
import type { EndStatus } from '../../workflows/shared/statuses.ts'
import { MissingPayloadKey } from '../payload-codec.ts'
import { workflowIdOf } from '../queues/runs.ts'
import { wentBack } from '../went-back.ts'
import { BATCH, type CheckDeps, type SweepDeps } from './deps.ts'
import { describeEach, type Found, pausedActivity, withTimeout } from './describe.ts'
import { lastTaskFailure, messageOf } from './failures.ts'
import type { OpenRuns } from './open.ts'
import { poolsReader, unpolledReason } from './unpolled.ts'

/** A pending task with more attempts than this, besides those that a node's `retry` makes, is stuck. */
const MAX_ATTEMPTS = 3

type UnrecordedEnd = Exclude<EndStatus, 'completed'>

/** Checks the runs without a write for `idle` (a PostgreSQL interval), the longest idle first. */
export async function sweepIdleRuns(deps: SweepDeps, idle: string): Promise<void> {
  const since = new Date()
  for (;;) {
    const runs = await listIdleRuns(deps.db.system, idle, since, BATCH)
    await checkRuns(deps, runs)
    if (runs.length < BATCH || !(await deps.keepOn())) return
  }
}

/** Runs per batch after a loss of Temporal: each batch is one query, and one statement that resumes what is missing. */
const MANY = 1_000

/**
 * Checks the sleeping runs that were last checked before Temporal lost something, the last changed first, because a
 * Temporal that was restored lacks the newest. Runs that Temporal has not listed as open since are resumed without asking
 * it about each; if it has such a run nevertheless, it refuses the start, and the relay has the workflow read the rows.
 * @returns whether there may be more.
 */
export async function sweepLostRuns(deps: SweepDeps, open: OpenRuns | undefined): Promise<boolean> {
  const lostAt = await readLostAt(deps.db.system)
  if (!lostAt) return false
  const listed = open && open.at >= lostAt ? open.ids : undefined
  const isListed = ({ id }: IdleRun) => !listed || listed.has(id)
  for (;;) {
    const runs = await listUnverifiedRuns(deps.db.system, MANY)
    await endLost(
      deps,
      runs.filter((run) => !isListed(run)),
    )
    await checkRuns(deps, runs.filter(isListed))
    if (runs.length < MANY) return false
    if (!(await deps.keepOn())) return true
  }
}

/** Records the end of runs whose workflow has ended without recording it, and the reason why others are stuck. */
export async function checkRuns(deps: CheckDeps, runs: IdleRun[]): Promise<void> {
  const checked: CheckedRun[] = []
  const lost: IdleRun[] = []
  const behind: IdleRun[] = []
  const pools = poolsReader(deps.db.system)
  const failed = await describeEach(deps, runs, workflowIdOf, async (run, found) => {
    const { end, reason: known, stale, unsettled } = await findingOf(deps, run, found)
    if (end === 'behind') return void behind.push(run)
    const waits = known === undefined && found !== 'not_found'
    const reason = waits ? await unpolledReason(found.workflow, pools) : known
    if (end === 'lost') return void lost.push(run)
    if (stale) await refresh(deps, run)
    if (end) await endRun(deps, run, end, reason ?? '')
    else checked.push({ ...keyOf(run), stuck_reason: reason ?? null, checked: !stale && !unsettled })
  })
  await endLost(deps, lost)
  await replaceBehind(deps, behind)
  // Failed rows too: a row that always fails must not stay at the head of the queue.
  for (const { row, error } of failed) {
    const stuck_reason = error instanceof MissingPayloadKey ? `In Temporal, ${error.message}.` : undefined
    checked.push({ ...keyOf(row), stuck_reason, checked: false })
  }
  if (checked.length > 0) await markRunsChecked(deps.db.system, checked)
}

/**
 * Temporal does not know the workflows, or they have completed without a record, because a store was restored to an
 * earlier moment: the runs continue from their rows. One that cannot be resumed ends.
 */
async function endLost(deps: CheckDeps, lost: IdleRun[]): Promise<void> {
  const resumed = await resumeRuns(deps.db.system, lost)
  if (resumed.size > 0)
    deps.log.warn(
      { count: resumed.size, run_ids: [...resumed].slice(0, SHOWN) },
      'resumed runs that Temporal had lost',
    )
  for (const run of lost) if (!resumed.has(run.id)) await endRun(deps, run, 'lost', LOST)
}

/**
 * Temporal has gone back to an earlier state of these workflows. A worker that went on knows the later one by heart: it
 * skips what is new to Temporal, and answers with results of later segments, which no replay can follow. So the runs
 * continue from their rows in new workflows; the relay ends the old ones. One that cannot be resumed ends.
 */
async function replaceBehind(deps: CheckDeps, behind: IdleRun[]): Promise<void> {
  const resumed = await resumeRuns(deps.db.system, behind)
  if (resumed.size > 0)
    deps.log.warn(
      { count: resumed.size, run_ids: [...resumed].slice(0, SHOWN) },
      'resumed runs of which Temporal had an earlier state',
    )
  for (const run of behind)
    if (!resumed.has(run.id)) await endRun(deps, run, 'lost', BEHIND, { terminates: true })
}

const LOST = "Temporal no longer has the run's workflow."
const BEHIND = `Temporal has an earlier state of the run's workflow, and the run was resumed ${MAX_RESUMES} times already.`
/** The most ids in a line of the log. */
const SHOWN = 20

const keyOf = ({ organization_id, id }: IdleRun) => ({ organization_id, id })

interface Finding {
  /** `behind`: Temporal has an earlier state of the workflow than its own segments recorded. */
  end?: UnrecordedEnd | 'behind'
  reason?: string
  /** Whether the workflow waits for other things than the rows say: the database or Temporal was restored. */
  stale?: boolean
  /** Whether the workflow must still do something: the next look must not be late. */
  unsettled?: boolean
}

async function findingOf({ client }: CheckDeps, run: IdleRun, found: Found): Promise<Finding> {
  if (found === 'not_found') return { end: 'lost', reason: LOST }
  const { workflow } = found
  const end = ENDS[workflow.status.name]
  if (end) return { end, reason: reasonOf(run, end, workflow) }
  if (wentBack(workflow, run)) return { end: 'behind' }
  const reason = await stuckReason(client, run, workflow)
  const { raw } = workflow
  // The pending task will read the rows. A signal would load a busy server, and reset the attempts of a failing task.
  if (raw.pendingWorkflowTask) return { ...(reason !== undefined && { reason }), unsettled: true }
  const calls = raw.pendingActivities?.length ?? 0
  const stale =
    run.kind === 'run' && (run.overdue || run.unheeded || run.calls > calls || isOther(workflow, run))
  return { ...(reason !== undefined && { reason }), stale, unsettled: run.told }
}

/** Whether the rows were told of by another Temporal run than the newest. */
const isOther = ({ runId }: WorkflowExecutionDescription, run: IdleRun): boolean =>
  run.temporal_run_id !== null && runId !== run.temporal_run_id

function reasonOf(run: IdleRun, end: UnrecordedEnd, { status }: WorkflowExecutionDescription): string {
  // The only attempt of a node test reported nothing.
  if (run.kind === 'node_test' && end === 'failed')
    return 'The test has no result: its worker ended or could not record it. A call may have been made; test the node again.'
  return `The workflow was ${status.name.toLowerCase()} in Temporal.`
}

/** Tells the workflow to continue from the rows. */
const refresh = ({ client, log }: CheckDeps, run: IdleRun) =>
  withTimeout(client, () => client.workflow.getHandle(workflowIdOf(run)).signal(REFRESH)).catch((err) =>
    log.warn({ err, run_id: run.id }, 'a run could not be refreshed'),
  )

/** The end status of a running row, by the status of its workflow in Temporal. */
const ENDS: Record<string, UnrecordedEnd | undefined> = {
  COMPLETED: 'lost',
  FAILED: 'failed',
  CANCELLED: 'cancelled',
  TERMINATED: 'terminated',
  TIMED_OUT: 'failed',
}

async function stuckReason(
  client: Client,
  run: IdleRun,
  workflow: WorkflowExecutionDescription,
): Promise<string | undefined> {
  const { raw } = workflow
  const paused = pausedActivity(workflow)
  if (paused) return `Activity ${paused.activityType?.name} is paused in Temporal.`
  // The row counts the attempts of the node: those beyond were lost with a worker, or could not be recorded.
  // One that waits for a slot is not stuck: `waiting_for` of the run says so.
  const activity = raw.pendingActivities?.find(
    ({ attempt, lastFailure }) =>
      (attempt ?? 0) > run.attempts + MAX_ATTEMPTS && lastFailure?.applicationFailureInfo?.type !== NO_SLOT,
  )
  if (activity)
    return `Activity ${activity.activityType?.name} is at attempt ${activity.attempt}: ${await messageOf(client, activity.lastFailure)}`
  const task = raw.pendingWorkflowTask
  if (task && (task.attempt ?? 0) > MAX_ATTEMPTS)
    return `The workflow task is at attempt ${task.attempt}: ${await lastTaskFailure(client, workflow)}`
  return undefined
}

/** The move tests the row again under its lock: a run that recorded its end meanwhile, or was reset, stays as it is. */
async function endRun(
  { db, log }: CheckDeps,
  run: IdleRun,
  status: UnrecordedEnd,
  reason: string,
  options?: { terminates: boolean },
) {
  const { organization_id, id, temporal_run_id } = run
  const error = { code: status, message: reason }
  const ended = await db.tenant(organization_id, SYSTEM, (tx) =>
    endUnrecordedRun(tx, id, temporal_run_id, status, error, options),
  )
  if (ended) log.warn({ organization_id, run_id: id, status }, 'recorded the end of a run')
}
