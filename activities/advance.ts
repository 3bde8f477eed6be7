import { activityInfo, Context } from '@temporalio/activity'
import { v7 as uuidv7 } from 'uuid'
import type { NewEvent } from '../db/events/outbox.ts'
import { nodeSpanId } from '../db/model/spans.ts'
import type { Database } from '../db/postgres/connect.ts'
import { isRefusal } from '../db/postgres/sql-state.ts'
import { gathering, type Tenant } from '../db/postgres/tenancy.ts'
import type { Logger } from '../db/process/log.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { belowNode, belowRun, traceNode, traceRun } from '../db/process/traces/runs.ts'
import { type ApprovalKey, approvalLink } from '../db/runs/approval-links.ts'
import { startErrorWorkflow } from '../db/runs/error-workflow.ts'
import { runEvent } from '../db/runs/events.ts'
import { findKeptLoop, listItems, listResults } from '../db/runs/loops.ts'
import { cancelWaits, endFamily } from '../db/runs/moves/ends.ts'
import { recordSegment } from '../db/runs/moves/segments.ts'
import { listCreated, recordFailure } from '../db/runs/state.ts'
import type { Happened, SegmentAnswer, SegmentInput } from '../workflows/bundle/protocol.ts'
import type { CreatedObject, RunError, RunNode, RunState } from '../workflows/interpret/run-state.ts'
import { runSegment, type SegmentResult } from '../workflows/interpret/segment.ts'
import { isOpen } from '../workflows/interpret/step.ts'
import type { Program, ProgramNode } from '../workflows/language/definition.ts'
import { LIMITS } from '../workflows/shared/run-limits.ts'
import { createTurns } from '../workflows/shared/turns.ts'
import type { EffectFactories } from './effects/define.ts'
import { describeFault, isTransient, toFailure } from './faults.ts'
import { needsSavepoints, runLightNode } from './light-node.ts'
import { endedAs, loadSegment, requireNewest, type TemporalRun } from './load-segment.ts'
import type { Programs } from './programs.ts'
import { beginWaits, readAnswers, withoutCancelled } from './waits.ts'

export interface AdvanceDeps {
  db: Database
  log: Logger
  programs: Programs
  effects: EffectFactories
  /** The base URL of the API, for links to runs in the Temporal UI. */
  publicUrl: string | undefined
  /** Signs the links of approvals. 32 bytes. */
  secretsKey: SecretsKey
  /** Takes the milliseconds that Temporal needed to continue a run after a timer or an external node. */
  recordDelay?: ((milliseconds: number) => void) | undefined
}

/**
 * Runs one segment of a run in one transaction: applies the outcomes in `happened`, runs every light node that is
 * ready, and commits node rows, records, events and the answer together. A repeated call returns the recorded answer.
 */
export function createAdvance(deps: AdvanceDeps) {
  const failedBefore = new WeakSet<ProgramNode>()
  return async function advance(input: SegmentInput): Promise<SegmentAnswer> {
    const temporalRunId = activityInfo().workflowExecution?.runId ?? ''
    const log = deps.log.child({ organization_id: input.organization_id, run_id: input.run_id })
    const transact = <T>(work: (tx: Tenant) => Promise<T>) =>
      deps.db.tenant(input.organization_id, { type: 'workflow_run', id: input.run_id }, work)
    try {
      const attempt = (newest: boolean, savepoints: boolean) =>
        transact((tx) =>
          oneSegment(tx, { ...deps, log, savepoints, failedBefore }, input, { id: temporalRunId, newest }),
        )
      const one = (newest: boolean) =>
        attempt(newest, false).catch((error: unknown) => {
          if (!needsSavepoints(error)) throw error
          return attempt(newest, true)
        })
      const answer = (await one(false)) ?? (await requireNewest(temporalRunId)) ?? (await one(true))
      if (!answer) throw new Error('the owner of a run is undecided')
      if (isCancelledByRow(answer, input)) await requestCancellation(log)
      return answer
    } catch (error) {
      log.error({ err: error }, 'a segment failed')
      try {
        // PostgreSQL would refuse the same data again.
        if (isRefusal(error)) return await transact((tx) => endReduced(tx, input, temporalRunId, REFUSED))
        const failures = await transact((tx) => noteFailure(tx, input, temporalRunId, error))
        if (failures < MAX_FAILURES) throw retryLater(error, failures)
        return await transact((tx) => endReduced(tx, input, temporalRunId, UNEXPECTED))
      } catch (second) {
        throw toFailure(second, { last: false })
      }
    }
  }
}

/** Unexpected failures of one segment in a row, after which the run fails. */
const MAX_FAILURES = 5
/** Milliseconds before each of their retries. */
const PAUSES = [200, 1_000, 2_000, 5_000]

/** How a run fails that can never succeed. Its error holds nothing of the cause, which the log has. */
const REFUSED = { code: 'not_recordable', message: 'The database refused the results of the run.' }
const UNEXPECTED = { code: 'internal_error', message: 'The run failed unexpectedly.' }

/** Without a database there is nowhere to note it. @returns the unexpected failures so far. */
async function noteFailure(
  tx: Tenant,
  { run_id }: SegmentInput,
  temporalRunId: string,
  error: unknown,
): Promise<number> {
  const { attempt } = activityInfo()
  const unexpected = !isTransient(error)
  const reason = describeFault(error)
  return (await recordFailure(tx, run_id, { temporalRunId, attempt, reason, unexpected })) ?? 0
}

/** Transient errors are retried without limit, with the backoff of the retry policy. */
function retryLater(error: unknown, failures: number): Error {
  const delay = isTransient(error) ? undefined : PAUSES[failures - 1]
  return toFailure(error, { last: false, ...(delay === undefined ? {} : { delay }) })
}

/** Whether a segment ended the run as cancelled although Temporal has not requested it. */
const isCancelledByRow = ({ commands }: SegmentAnswer, { happened }: SegmentInput) =>
  commands.some((command) => command.type === 'end' && command.status === 'cancelled') &&
  !happened.some(({ type }) => type === 'cancelled')

/** Temporal ends a workflow as Canceled only after a request. */
async function requestCancellation(log: Logger): Promise<void> {
  const { client, info } = Context.current()
  const workflow = client.workflow.getHandle(info.workflowExecution?.workflowId ?? '')
  await workflow.cancel().catch((err) => log.warn({ err }, 'the workflow could not be cancelled in Temporal'))
}

/**
 * A savepoint takes two statements more, each with its wait for PostgreSQL: half of those of a node. So nodes take none
 * at first; if one fails, the segment is repeated with them. Where a failure is likely, savepoints are taken at once: in a
 * run whose loops have failed items, and for a node outside of loops that has failed in this process.
 */
interface Careful {
  savepoints: boolean
  failedBefore: WeakSet<ProgramNode>
}

async function oneSegment(
  tx: Tenant,
  {
    programs,
    effects,
    log,
    publicUrl,
    secretsKey,
    recordDelay,
    savepoints,
    failedBefore,
  }: AdvanceDeps & Careful,
  input: SegmentInput,
  temporalRun: TemporalRun,
): Promise<SegmentAnswer | undefined> {
  const loaded = await loadSegment(tx, input, temporalRun)
  if (!loaded || 'commands' in loaded) return loaded
  const { state, reissue } = loaded
  const { run } = state
  const happened = cancelledBefore(state, input) ? [{ type: 'cancelled' } as const] : input.happened
  const program = await programs.get(tx, run.workflow_id!, run.workflow_version!)
  // Its id is generated first, so that it sorts before the events of the nodes.
  const starts = input.segment === 0 && !happened.some(({ type }) => type === 'cancelled')
  const started = starts ? [{ id: uuidv7(), ...runEvent(run, 'running') }] : []
  const now = new Date()
  const delay = delayOf(state, happened, now)
  if (delay !== undefined) recordDelay?.(delay)
  const events: NewEvent[] = []
  const objects: CreatedObject[] = []
  const turn = createTurns()
  // Where items have failed, others will: the segment would be repeated.
  const careful = savepoints || state.loops.some(({ failed }) => failed > 0)
  // One for all nodes: what it has read and locked is known to the next one.
  const optimistic = careful ? tx : gathering(tx)
  const { answers, children, hasWaits } = await readAnswers(tx, state, happened)
  const {
    answer,
    nodes,
    waits,
    end: ended,
    paused,
    sleepsUntil,
    ...changed
  } = await runSegment(
    program,
    state,
    { ...input, happened },
    {
      clock: Date.now,
      reissue,
      hold: run.pause_requested_at !== null,
      answers,
      children,
      limits: LIMITS,
      runUrl: publicUrl && new URL(`/v1/runs/${run.id}`, publicUrl).href,
      loops: {
        items: (loop, from, count) => listItems(tx, run.id, loop, { from, count }),
        results: (loop) => listResults(tx, run.id, loop),
        ...(run.retry_of ? { kept: (loop: string) => findKeptLoop(tx, run.id, loop) } : {}),
      },
      async runNode(node, scope, path) {
        // Pure nodes wait for nothing: without this, a segment of them would hold up the process.
        await turn()
        const created = run.reopened ? await listCreated(tx, run.id, { path, node_id: node.id }) : null
        const attempt = { node, path, state, scope, now, signal: NEVER, created }
        const alone = careful || (path === '' && failedBefore.has(node))
        const traced = belowNode(alone ? tx : optimistic, run, { path, node_id: node.id, attempt: 1 })
        const done = await runLightNode({ effects, log }, traced, attempt, alone)
        if (path === '' && node.effect !== 'pure' && done.outcome.status === 'failed') failedBefore.add(node)
        const span = tx.spans && { span: nodeSpanId(run.id, path, node.id, 1) }
        events.push(...done.raised.map((event) => ({ ...event, ...span })))
        objects.push(...done.created)
        return done.outcome
      },
    },
  )
  const end = await withErrorWorkflow(tx, run, withReason(run, ended))
  const lastEvents = end && end.status !== 'cancelled' ? [runEvent(run, end.status, end)] : []
  const linkOf = (approval: ApprovalKey) => approvalLink(secretsKey, publicUrl, approval)
  const gone = nodes.filter(({ status }) => status === 'cancelled')
  events.push(...(await beginWaits(tx, run, withoutCancelled(waits, gone), linkOf)))
  const hasFamily = run.parent_run_id !== null || hasWaits || waits.length > 0
  const cancelled = end ? [] : gone
  if (tx.spans) traceSegment(tx, run, program, nodes, end)
  await recordSegment(belowRun(tx, run), run.id, {
    temporal_run_id: temporalRun.id,
    segment: input.segment,
    answer,
    nodes,
    loops: changed.loops,
    iterations: changed.iterations,
    events: [...started, ...events, ...lastEvents],
    created: objects,
    sleeps_until: sleepsUntil,
    paused,
    ...(end ? { end } : {}),
  })
  if (end && hasFamily) await endFamily(tx, run)
  if (cancelled.length > 0) await cancelWaits(tx, run.id, cancelled)
  return answer
}

/** Records the spans of the nodes that ended in a segment, and of its run. The attempts of external nodes have theirs. */
function traceSegment(
  tx: Tenant,
  run: RunState['run'],
  program: Program,
  nodes: RunNode[],
  end: SegmentResult['end'],
): void {
  for (const node of nodes)
    if (node.ended_at !== null && program.nodes[node.node_id]?.effect !== 'external')
      traceNode(tx, run, node, {
        start: Date.parse(node.started_at),
        end: Date.parse(node.ended_at),
        failed: node.status === 'failed',
        calls: false,
      })
  if (end) traceRun(tx, run, end.status)
}

/** The end of a run; if it was cancelled by a rule, with the reason. */
function withReason<E extends SegmentResult['end']>({ cancel_reason }: RunState['run'], end: E): E {
  if (end?.status !== 'cancelled' || !end.error || cancel_reason === null) return end
  return { ...end, error: { ...end.error, message: cancel_reason } }
}

/** How long Temporal took to continue the run, in ms: since its timer was due, or the result of its node was recorded. */
function delayOf({ run, nodes }: RunState, happened: Happened[], now: Date): number | undefined {
  // A delay that ended during a pause was not late.
  if (run.resumes > 0) return undefined
  const times = happened.flatMap((one) => {
    if (one.type !== 'timer' && one.type !== 'settled') return []
    const row = nodes.find(({ path, node_id }) => path === (one.path ?? '') && node_id === one.node)
    const since = one.type === 'timer' ? row?.wait_until : row?.ended_at
    return since ? [Date.parse(since)] : []
  })
  // A node whose timer has fired may have waited for the segment before: the last one counts.
  return times.length === 0 ? undefined : Math.max(0, now.getTime() - Math.max(...times))
}

/** The end of a run; if it failed, with what became of its error workflow. */
async function withErrorWorkflow<E extends SegmentResult['end']>(
  tx: Tenant,
  run: RunState['run'],
  end: E,
): Promise<E> {
  if (end?.status !== 'failed' || !end.error) return end
  return { ...end, error: await startErrorWorkflow(tx, run, { status: end.status, error: end.error }) }
}

/** The relay sends a cancellation to Temporal only for running runs: the first segment looks for an earlier one. */
const cancelledBefore = ({ run }: RunState, { segment, resume }: SegmentInput) =>
  (segment === 0 || resume !== undefined) && run.cancel_requested_at !== null

/** A segment is never cancelled: it is short, and all or nothing. */
const NEVER = new AbortController().signal

/** Ends the run as failed, without anything that the segment did. */
async function endReduced(
  tx: Tenant,
  input: SegmentInput,
  temporalRunId: string,
  error: RunError,
): Promise<SegmentAnswer> {
  // Another owner's run is not ended here.
  const loaded = await loadSegment(tx, input, { id: temporalRunId, newest: false })
  if (!loaded) throw new Error('a segment of a run that has another owner failed')
  if ('commands' in loaded) return loaded
  const { state } = loaded
  const answer = endedAs('failed', `**failed**: ${error.message}`, error)
  const end = await withErrorWorkflow(tx, state.run, { status: 'failed' as const, outputs: undefined, error })
  traceRun(tx, state.run, 'failed')
  await recordSegment(belowRun(tx, state.run), input.run_id, {
    temporal_run_id: temporalRunId,
    segment: input.segment,
    answer,
    nodes: state.nodes.filter(isOpen).map((node) => ({ ...node, ...cancelled(input.segment) })),
    loops: state.loops.map((loop) => ({ ...loop, open: false })),
    iterations: state.iterations.map((iteration) => ({ ...iteration, ...cancelled(input.segment) })),
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
