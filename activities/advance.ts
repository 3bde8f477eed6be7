import { activityInfo, Context } from '@temporalio/activity'
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common'
import { runEvent } from '../db/model/runs/run-event.ts'
import type { Database } from '../db/postgres/connect.ts'
import { databaseId } from '../db/postgres/database-id.ts'
import { isRefusal } from '../db/postgres/sql-state.ts'
import type { System, Tenant } from '../db/postgres/tenancy.ts'
import { NoThread } from '../db/process/compute/computed.ts'
import type { Logger } from '../db/process/log.ts'
import { belowRun, reportRunEnd } from '../db/process/traces/runs.ts'
import { isBehind, listDatabaseIds } from '../db/queue/witness.ts'
import { endFamily } from '../db/runs/moves/ends.ts'
import { recordSegment } from '../db/runs/moves/segments.ts'
import { recordFailure } from '../db/runs/state.ts'
import {
  EXPECTED_BY_ATTRIBUTE,
  type SegmentAnswer,
  type SegmentInput,
  STATE_ATTRIBUTE,
} from '../workflows/bundle/protocol.ts'
import type { RunError } from '../workflows/interpret/run-state.ts'
import { isOpen } from '../workflows/interpret/step.ts'
import type { ProgramNode } from '../workflows/language/definition.ts'
import { commitSegment, type SegmentDeps, withErrorWorkflow } from './commit-segment.ts'
import type { LightWork } from './compute/light-work.ts'
import { describeFault, isTransient, toFailure, UnknownRun, withoutStack } from './faults.ts'
import { needsSavepoints } from './light-node.ts'
import { endedAs, loadSegment, requireNewest, type TemporalRun, UNKNOWN } from './load-segment.ts'

export interface AdvanceDeps extends SegmentDeps {
  db: Database
  lightWork: LightWork
  /** Whether the namespace has a search attribute: a workflow task that sets another one always fails. */
  hasAttribute?: (name: string) => boolean
}

/** One call of the activity. */
interface Call {
  input: SegmentInput
  temporalRunId: string
  transact: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>
}

/**
 * Runs one segment of a run in one transaction: applies the outcomes in `happened`, runs every light node that is
 * ready, and commits node rows, records, events and the answer together. A repeated call returns the recorded answer.
 */
export function createAdvance(deps: AdvanceDeps) {
  const failedBefore = new WeakSet<ProgramNode>()
  return async function advance(input: SegmentInput): Promise<SegmentAnswer> {
    const log = deps.log.child({ organization_id: input.organization_id, run_id: input.run_id })
    const actor = { type: 'workflow_run' as const, id: input.run_id }
    const call: Call = {
      input,
      temporalRunId: activityInfo().workflowExecution?.runId ?? '',
      transact: (work) => deps.db.tenant(input.organization_id, actor, work),
    }
    await requireOwnDatabase(deps.db.system, input.database).catch((error) => {
      log.error({ err: error }, 'a run cannot go on here')
      throw toFailure(error, { last: false })
    })
    try {
      const answer = await answerOf(call, { ...deps, log, failedBefore })
      if (answer === UNKNOWN && (await isBehind(deps.db.system, activityInfo().taskQueue)))
        throw new UnknownRun()
      if (isCancelledByRow(answer, input)) await requestCancellation(log)
      if (isTerminatedByRow(answer)) await requestTermination(log)
      if (deps.hasAttribute?.(STATE_ATTRIBUTE) === false) delete answer.state
      if (deps.hasAttribute?.(EXPECTED_BY_ATTRIBUTE) === false) delete answer.expected_by
      return answer
    } catch (error) {
      if (error instanceof NoThread) throw noThread()
      log.error({ err: error }, 'a segment failed')
      return await afterFailure(call, error)
    }
  }
}

/**
 * The segment is repeated, and has not failed. Meanwhile it occupies no slot of the worker; its workflow task waits with
 * it, of which there are more than active runs.
 */
const noThread = () =>
  withoutStack(
    ApplicationFailure.create({
      type: 'no_thread',
      message: 'The segment waits for a free thread: too many segments compute long texts.',
      nextRetryDelay: RETRY_MS + Math.random() * RETRY_MS,
      // The worker does not log a benign failure as its own.
      category: ApplicationFailureCategory.BENIGN,
    }),
  )

const RETRY_MS = 500

/**
 * Throws if the run belongs to another database, of which this one is a copy or nothing at all: Temporal asks again,
 * until a worker of the other one takes the run.
 */
async function requireOwnDatabase(system: System, database: string | undefined): Promise<void> {
  if (database === undefined || database === (await databaseId(system))) return
  if ((await listDatabaseIds(system)).includes(database)) return
  throw new Error(
    `the run belongs to the database ${database}, not to this one, ${await databaseId(system)}: this worker must not ` +
      'serve its task queue',
  )
}

/** Commits the segment, if the Temporal run owns the run. A segment that needs savepoints is repeated with them. */
async function answerOf(
  { input, temporalRunId, transact }: Call,
  deps: SegmentDeps & { failedBefore: WeakSet<ProgramNode>; lightWork: LightWork },
): Promise<SegmentAnswer> {
  const commit = (newest: boolean, savepoints: boolean) =>
    deps.lightWork.beforeSegment(input.organization_id, (compute) =>
      transact((tx) =>
        commitSegment(tx, { ...deps, savepoints, compute }, input, { id: temporalRunId, newest }),
      ),
    )
  const attempt = (newest: boolean) =>
    commit(newest, false).catch((error: unknown) => {
      if (!needsSavepoints(error)) throw error
      return commit(newest, true)
    })
  // Another Temporal run owns a run that is resumed: the first attempt would only find that out.
  const first = input.resume ? undefined : await attempt(false)
  const answer = first ?? (await requireNewest(temporalRunId)) ?? (await attempt(true))
  if (!answer) throw new Error('the owner of a run is undecided')
  return answer
}

/** Counts the failure of a segment, then has Temporal retry it, or ends the run. Throws an ApplicationFailure. */
async function afterFailure(call: Call, error: unknown): Promise<SegmentAnswer> {
  const { input, temporalRunId, transact } = call
  try {
    const temporalRun = { id: temporalRunId, newest: (await requireNewest(temporalRunId)) === undefined }
    // PostgreSQL would refuse the same data again.
    if (isRefusal(error)) return await transact((tx) => endReduced(tx, input, temporalRun, REFUSED))
    const failures = await transact((tx) => noteFailure(tx, input, temporalRun, error))
    if (failures < MAX_FAILURES) throw retryLater(error, failures)
    return await transact((tx) => endReduced(tx, input, temporalRun, UNEXPECTED))
  } catch (second) {
    throw toFailure(second, { last: false })
  }
}

/** Unexpected failures of one segment in a row, after which the run fails. */
const MAX_FAILURES = 5
/** Milliseconds before each of their retries. */
const PAUSES = [200, 1_000, 2_000, 5_000]

/** The error of a run that can never succeed. It does not show the cause, which is in the log. */
const REFUSED = { code: 'not_recordable', message: 'The database refused the results of the run.' }
const UNEXPECTED = { code: 'internal_error', message: 'The run failed unexpectedly.' }

/** @returns the unexpected failures of the segment in a row. */
async function noteFailure(
  tx: Tenant,
  { run_id }: SegmentInput,
  temporalRun: TemporalRun,
  error: unknown,
): Promise<number> {
  const { attempt } = activityInfo()
  const unexpected = !isTransient(error)
  const reason = describeFault(error)
  return (await recordFailure(tx, run_id, { temporalRun, attempt, reason, unexpected })) ?? 0
}

/** Transient errors are retried without limit, with the backoff of the retry policy. */
function retryLater(error: unknown, failures: number): Error {
  const delay = isTransient(error) ? undefined : PAUSES[failures - 1]
  return toFailure(error, { last: false, ...(delay === undefined ? {} : { delay }) })
}

/**
 * Whether a segment ended the run as cancelled although Temporal has not requested a cancellation of this workflow, or
 * may have requested it only of its predecessor, which continued as new.
 */
const isCancelledByRow = ({ commands }: SegmentAnswer, { happened, resume }: SegmentInput) =>
  commands.some((command) => command.type === 'end' && command.status === 'cancelled') &&
  (resume !== undefined || !happened.some(({ type }) => type === 'cancelled'))

/** Temporal ends a workflow as Canceled only after a request. */
async function requestCancellation(log: Logger): Promise<void> {
  const { client, info } = Context.current()
  const workflow = client.workflow.getHandle(info.workflowExecution?.workflowId ?? '')
  await workflow.cancel().catch((err) => log.warn({ err }, 'the workflow could not be cancelled in Temporal'))
}

/** Whether the run was terminated before this segment, or another Temporal run has taken it over. */
const isTerminatedByRow = ({ commands }: SegmentAnswer) =>
  commands.some((command) => command.type === 'end' && command.status === 'terminated' && !command.error)

/** The relay found no workflow to terminate if the run was terminated while it was starting. */
async function requestTermination(log: Logger): Promise<void> {
  const { client, info } = Context.current()
  const { workflowId, runId } = info.workflowExecution ?? { workflowId: '' }
  await client.workflow
    .getHandle(workflowId, runId)
    .terminate('The run was terminated, or another execution continues it.')
    .catch((err) => log.warn({ err }, 'the workflow could not be terminated in Temporal'))
}

/** Ends the run as failed, without anything that the segment did. */
async function endReduced(
  tx: Tenant,
  input: SegmentInput,
  temporalRun: TemporalRun,
  error: RunError,
): Promise<SegmentAnswer> {
  const loaded = await loadSegment(tx, input, temporalRun)
  if (!loaded) throw new Error('a segment of a run that has another owner failed')
  if ('commands' in loaded) return loaded
  const { state, segment } = loaded
  const answer = endedAs('failed', `**failed**: ${error.message}`, error)
  const end = await withErrorWorkflow(tx, state.run, { status: 'failed' as const, outputs: undefined, error })
  reportRunEnd(tx, state.run, 'failed')
  await recordSegment(belowRun(tx, state.run), input.run_id, {
    temporal_run_id: temporalRun.id,
    segment,
    origin: input.origin,
    happened: input.happened,
    answer,
    nodes: state.nodes.filter(isOpen).map((node) => ({ ...node, ...cancelled(segment) })),
    loops: state.loops.map((loop) => ({ ...loop, open: false })),
    iterations: state.iterations.map((iteration) => ({ ...iteration, ...cancelled(segment) })),
    events: [runEvent(state.run, 'failed', end)],
    end,
  })
  await endFamily(tx, state.run)
  return answer
}

const cancelled = (segment: number) => ({
  status: 'cancelled' as const,
  settled_segment: segment,
  ended_at: new Date().toISOString(),
})
