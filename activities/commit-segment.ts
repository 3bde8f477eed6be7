import { v7 as uuidv7 } from 'uuid'
import { fullMessage } from '../db/model/errors.ts'
import type { NewEvent } from '../db/model/events/event.ts'
import { runEvent } from '../db/model/runs/run-event.ts'
import { nodeSpanId } from '../db/model/spans.ts'
import { gathering, type Tenant } from '../db/postgres/tenancy.ts'
import { approvalLink } from '../db/process/approval-links.ts'
import { NeedsComputation } from '../db/process/compute/computed.ts'
import type { Logger } from '../db/process/log.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { belowNode, belowRun, reportRunEnd, traceNode } from '../db/process/traces/runs.ts'
import { startErrorWorkflow } from '../db/runs/error-workflow.ts'
import { findKeptLoop, findTurn, listItems, listResults } from '../db/runs/loops.ts'
import { cancelWaits, endFamily, mayBeFollowed, requestCancel } from '../db/runs/moves/ends.ts'
import { recordSegment } from '../db/runs/moves/segments.ts'
import { overtakenBy } from '../db/runs/overtaken.ts'
import { listCreated } from '../db/runs/state.ts'
import { storageExceeded } from '../db/storage/usage.ts'
import type { Happened, SegmentAnswer, SegmentInput } from '../workflows/bundle/protocol.ts'
import type { LoopHost } from '../workflows/interpret/loops.ts'
import type { CreatedObject, RunError, RunNode, RunState } from '../workflows/interpret/run-state.ts'
import { runSegment, type SegmentHost, type SegmentResult } from '../workflows/interpret/segment.ts'
import type { Program, ProgramNode } from '../workflows/language/definition.ts'
import { LIMITS } from '../workflows/shared/run-limits.ts'
import { createTurns } from '../workflows/shared/turns.ts'
import type { LightCompute } from './compute/light-work.ts'
import type { EffectFactories } from './effects/define.ts'
import { runLightNode } from './light-node.ts'
import { loadSegment, type TemporalRun } from './load-segment.ts'
import type { Programs } from './programs.ts'
import { beginWaits, readAnswers, withoutCancelled } from './waits.ts'

export interface SegmentDeps {
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
 * When nodes run in savepoints. A savepoint takes two more statements, each with its wait for PostgreSQL: half of those
 * of a node. So nodes take none at first, and if one fails, the segment is repeated with `savepoints`. They are taken
 * at once where a failure is likely: in a run whose loops have failed items, and for a node outside of loops that has
 * failed in this process.
 */
interface Careful {
  savepoints: boolean
  failedBefore: WeakSet<ProgramNode>
  compute: LightCompute
}

/** One segment in progress. */
interface Work {
  tx: Tenant
  deps: SegmentDeps & Careful
  input: SegmentInput
  temporalRun: TemporalRun
  state: RunState
  program: Program
  /** What happened, with a cancellation that Temporal was not told of. */
  happened: Happened[]
  now: Date
  /** `workflow.started`, if the run starts. */
  started: NewEvent[]
  /** What the nodes have raised and created so far. */
  events: NewEvent[]
  created: CreatedObject[]
}

/**
 * Runs one segment in the transaction `tx`, and writes all that it changes. A segment that is already recorded returns
 * its answer again.
 * @returns undefined if only the newest Temporal run of the workflow may go on.
 */
export async function commitSegment(
  tx: Tenant,
  deps: SegmentDeps & Careful,
  input: SegmentInput,
  temporalRun: TemporalRun,
): Promise<SegmentAnswer | undefined> {
  const loaded = await loadSegment(tx, input, temporalRun)
  if (!loaded || 'commands' in loaded) return loaded
  const { behind, segment } = loaded
  await cancelIfOvertaken(tx, loaded.state)
  const work = await beginWork(tx, deps, { ...input, segment }, temporalRun, loaded.state)
  if (!behind) reportDelay(work)
  const { answers, children, hasWaits } = await readAnswers(tx, work.state, work.happened)
  const result = await runSegment(
    work.program,
    work.state,
    { ...work.input, happened: work.happened },
    { ...hostOf(work), answers, children, reissue: loaded.reissue, behind, refusal: await refusalOf(work) },
  )
  if (behind) result.answer.segment = segment
  await writeResult(work, result, hasWaits || result.waits.length > 0)
  return result.answer
}

/** A run that begins may have been overtaken by an event of its `cancel_on`. */
async function cancelIfOvertaken(tx: Tenant, { run }: RunState): Promise<void> {
  if (run.temporal_run_id !== null || !run.cancel_on || run.cancel_requested_at !== null) return
  const reason = await overtakenBy(tx, run.id)
  if (reason === undefined) return
  await requestCancel(tx, run.id, reason)
  run.cancel_requested_at = new Date().toISOString()
  run.cancel_reason = reason
}

/** A run that begins while its organization is full would store more: it fails. One that has begun goes on. */
async function refusalOf({ tx, state }: Work): Promise<RunError | undefined> {
  if (!state.storage_full || state.nodes.length > 0 || state.run.temporal_run_id !== null) return undefined
  const error = await storageExceeded(tx)
  return { code: error.type, message: fullMessage(error) }
}

async function beginWork(
  tx: Tenant,
  deps: SegmentDeps & Careful,
  input: SegmentInput,
  temporalRun: TemporalRun,
  state: RunState,
): Promise<Work> {
  const happened = withCancellation(state, input.happened)
  const program = await deps.programs.get(tx, state.run.workflow_id!, state.run.workflow_version!)
  const started = startedEvent(input, happened, state)
  return {
    tx,
    deps,
    input,
    temporalRun,
    state,
    program,
    happened,
    started,
    now: new Date(),
    events: [],
    created: [],
  }
}

/**
 * Adds a cancellation that was requested in the row, which is locked. Temporal's may never arrive: the relay sends it
 * only to running runs, and this segment may pause the run.
 */
function withCancellation({ run }: RunState, happened: Happened[]): Happened[] {
  const isKnown = run.cancel_requested_at === null || happened.some(({ type }) => type === 'cancelled')
  return isKnown ? happened : [...happened, { type: 'cancelled' }]
}

/**
 * `workflow.started` in the first segment of a run, which is not 0 if the database was away for long. Its id is generated
 * first: it sorts before the nodes' events.
 */
function startedEvent({ segment }: SegmentInput, happened: Happened[], { run }: RunState): NewEvent[] {
  const starts =
    (segment === 0 || run.temporal_run_id === null) && !happened.some(({ type }) => type === 'cancelled')
  return starts ? [{ id: uuidv7(), ...runEvent(run, 'running') }] : []
}

/** Reports how long Temporal took to continue the run: since its timer was due, or its node's result was recorded. */
function reportDelay({ deps, state: { run, nodes }, happened, now }: Work): void {
  // A delay that ended during a pause was not late.
  if (run.resumes > 0) return
  const times = happened.flatMap((one) => {
    if (one.type !== 'timer' && one.type !== 'settled') return []
    const row = nodes.find(({ path, node_id }) => path === (one.path ?? '') && node_id === one.node)
    const since = one.type === 'timer' ? row?.wait_until : row?.ended_at
    return since ? [Date.parse(since)] : []
  })
  // A node whose timer has fired may have waited for the segment before: the last one counts.
  if (times.length > 0) deps.recordDelay?.(Math.max(0, now.getTime() - Math.max(...times)))
}

/** The dependencies of the interpreter, over the transaction. */
function hostOf(work: Work): Omit<SegmentHost, 'answers' | 'children' | 'reissue' | 'behind'> {
  const { run } = work.state
  const { publicUrl } = work.deps
  return {
    clock: Date.now,
    hold: run.pause_requested_at !== null,
    limits: { ...LIMITS, totalBytes: work.state.most_bytes ?? LIMITS.totalBytes },
    runUrl: publicUrl && new URL(`/v1/runs/${run.id}`, publicUrl).href,
    loops: loopsOf(work.tx, run),
    runNode: nodeRunner(work),
  }
}

function loopsOf(tx: Tenant, run: RunState['run']): LoopHost {
  return {
    items: (loop, from, count) => listItems(tx, run.id, loop, { from, count }),
    turn: (loop, from) => findTurn(tx, run.id, loop, from),
    results: (loop) => listResults(tx, run.id, loop),
    ...(run.retry_of ? { kept: (loop: string) => findKeptLoop(tx, run.id, loop) } : {}),
  }
}

/** Runs light nodes in the transaction, with a savepoint each where a failure is likely. */
function nodeRunner({ tx, deps, state, now, events, created }: Work): SegmentHost['runNode'] {
  const { run } = state
  const { failedBefore, savepoints, compute } = deps
  const turn = createTurns(tx.organizationId)
  // Items of these loops have failed: others probably will, and the segment would be repeated.
  const careful = savepoints || state.loops.some(({ failed }) => failed > 0)
  // Shared by all nodes: a node need not read and lock again what an earlier one did.
  const optimistic = careful ? tx : gathering(tx)
  let ran = 0
  return async (node, scope, path) => {
    // Pure nodes never yield: a segment of them would block the event loop.
    await turn()
    const before = run.reopened ? await listCreated(tx, run.id, { path, node_id: node.id }) : null
    const withSavepoint = careful || (path === '' && failedBefore.has(node))
    const traced = belowNode(withSavepoint ? tx : optimistic, run, { path, node_id: node.id, attempt: 1 })
    const attempt = {
      node,
      path,
      state,
      scope,
      now,
      signal: NEVER,
      created: before,
      compute,
      full: state.storage_full,
    }
    const done = await runLightNode(deps, traced, attempt, withSavepoint).catch((error: unknown) => {
      // Only the first node has the transaction begin again: so none of a segment is repeated for those after it.
      if (error instanceof NeedsComputation && ran > 0) return undefined
      throw error
    })
    if (!done) return 'later'
    ran += 1
    if (path === '' && node.effect !== 'pure' && done.outcome.status === 'failed') failedBefore.add(node)
    const span = tx.spans && { span: nodeSpanId(run.id, path, node.id, 1) }
    events.push(...done.raised.map((event) => ({ ...event, ...span })))
    created.push(...done.created)
    return done.outcome
  }
}

/** A segment is never cancelled: it is short, and all or nothing. */
const NEVER = new AbortController().signal

/**
 * Writes the rows, waits, events and the answer of a segment. The end of a run also closes its waits, and answers its
 * parent.
 */
async function writeResult(work: Work, result: SegmentResult, hasWaits: boolean): Promise<void> {
  const { tx, state, input } = work
  const { run } = state
  const end = await withErrorWorkflow(tx, run, result.end)
  const cancelled = result.nodes.filter(({ status }) => status === 'cancelled')
  const requested = await beginNewWaits(work, withoutCancelled(result.waits, cancelled))
  const endsFamily =
    end !== undefined &&
    (run.parent_run_id !== null || Boolean(run.concurrency_key) || hasWaits || mayBeFollowed(run))
  const cancelsWaits = !end && cancelled.length > 0
  if (tx.spans) traceSegment(work, result.nodes)
  if (end) reportRunEnd(tx, run, end.status)
  await recordSegment(belowRun(tx, run), run.id, {
    temporal_run_id: work.temporalRun.id,
    segment: input.segment,
    origin: input.origin,
    happened: input.happened,
    history_length: input.history_length,
    answer: result.answer,
    nodes: result.nodes,
    loops: result.loops,
    iterations: result.iterations,
    events: [...work.started, ...work.events, ...requested, ...endEvents(run, end)],
    created: work.created,
    characters: result.characters,
    sleeps_until: result.sleepsUntil,
    in_pool: result.inPool,
    paused: result.paused,
    ending: result.ending,
    ...(end ? { end } : {}),
  })
  if (endsFamily) await endFamily(tx, run)
  if (cancelsWaits) await cancelWaits(tx, run.id, cancelled)
}

/** Starts the error workflow of a failed run. @returns the end of the run; its error says what was started. */
export async function withErrorWorkflow<E extends SegmentResult['end']>(
  tx: Tenant,
  run: RunState['run'],
  end: E,
): Promise<E> {
  if (end?.status !== 'failed' || !end.error) return end
  return { ...end, error: await startErrorWorkflow(tx, run, { status: end.status, error: end.error }) }
}

/** @returns the events to raise: the requests of approvals. */
function beginNewWaits({ tx, state, deps }: Work, waits: SegmentResult['waits']): Promise<NewEvent[]> {
  return beginWaits(tx, state.run, waits, (approval) =>
    approvalLink(deps.secretsKey, deps.publicUrl, approval),
  )
}

/** A cancellation raises no event. */
function endEvents(run: RunState['run'], end: SegmentResult['end']): NewEvent[] {
  return end && end.status !== 'cancelled' ? [runEvent(run, end.status, end)] : []
}

/** Records the spans of the light nodes that ended in a segment. */
function traceSegment({ tx, state: { run }, program }: Work, nodes: RunNode[]): void {
  for (const node of nodes)
    if (node.ended_at !== null && program.nodes[node.node_id]?.effect !== 'external')
      traceNode(tx, run, node, {
        start: Date.parse(node.started_at),
        end: Date.parse(node.ended_at),
        failed: node.status === 'failed',
        calls: false,
      })
}
