import { randomUUID } from 'node:crypto'
import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity'
import { openSecrets } from '../db/access/secrets.ts'
import { insertEvents } from '../db/events/outbox.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { belowNode, traceNode } from '../db/process/traces/runs.ts'
import { attemptResult } from '../db/runs/attempts.ts'
import { refreshStopping } from '../db/runs/commands.ts'
import { MOST_WAITING_COUNTED, takeNodeTurn } from '../db/runs/node-turns.ts'
import {
  beginAttempt,
  hasOwned,
  type KeptProgress,
  lockRun,
  ownsAttempt,
  releaseAttempt,
  sleepForTurns,
  updateNode,
} from '../db/runs/state.ts'
import { storeFiles } from '../db/stored-files/files.ts'
import { NOT_MADE, type NodeInput } from '../workflows/bundle/protocol.ts'
import type { Failure, Outcome } from '../workflows/interpret/execute.ts'
import { type Frame, framesOf } from '../workflows/interpret/frames.ts'
import type { OpenedSecrets } from '../workflows/interpret/node-secrets.ts'
import type { RunError, RunState } from '../workflows/interpret/run-state.ts'
import { scopeOf } from '../workflows/interpret/scope.ts'
import type { ProgramNode } from '../workflows/language/definition.ts'
import { CALL_TURN, TURNS } from '../workflows/language/node-error.ts'
import { AttemptProgress } from './attempt-progress.ts'
import { withDeadline } from './deadline.ts'
import { causeOf, exceeded, UNEXPECTED } from './explain.ts'
import { toFailure, withoutStack } from './faults.ts'
import { type OnBegun, OwnAttempts } from './own-attempts.ts'
import { failed, type NodeDeps, type Performed, performNode } from './perform-node.ts'
import { isInWrongQueue, poolRefusal } from './pool.ts'
import type { Programs } from './programs.ts'
import type { CallSlots } from './slots/call-slots.ts'
import { type Reach, ServiceBusy } from './slots/in-slot.ts'
import { NodeTurns } from './slots/node-turns.ts'
import { whenAvailable } from './when-available.ts'

export interface RunNodeDeps extends NodeDeps {
  db: Database
  programs: Programs
  /** The slots of the process. */
  slots: CallSlots
  /** Opens the secrets of organizations. 32 bytes. */
  secretsKey: SecretsKey
  /** The pool of this worker, if it is in one. */
  pool?: string | undefined
}

/** Temporal attempts after which an unexpected error, which the node has not caused, is final. */
const MAX_FAILURES = 5

/**
 * Renders, runs and records one attempt of an external node; the workflow is only told that it settled. The row of the
 * node counts the attempts and has the token of the one that owns it: an attempt that is lost with its worker is
 * repeated with the same number and idempotency key. While the database is unavailable, the attempt waits in this
 * process, so that an outage uses up no attempt, and a finished call is not repeated.
 */
export function createRunNode(deps: RunNodeDeps) {
  const turns = new NodeTurns(deps)
  const failures = new Failures()
  const attempts = new OwnAttempts()
  return async function runNode(input: NodeInput): Promise<{ status: 'completed' }> {
    try {
      await attempts.join(input, (signal, begun) =>
        turns.run(input, signal, (reach) => oneAttempt(deps, input, { signal, reach, begun })),
      )
      return { status: 'completed' }
    } catch (error) {
      if (error instanceof ApplicationFailure || error instanceof CancelledFailure)
        throw toFailure(error, { last: false })
      deps.log.error({ err: error, run_id: input.run_id, node: input.node }, 'an external node failed')
      throw toFailure(error, { last: failures.of(input) >= MAX_FAILURES })
    }
  }
}

/**
 * Counts the internal errors of each call in this process. Temporal's number of the attempt also counts those that found
 * no slot, and mails that waited for their minute.
 */
class Failures {
  private readonly counts = new Map<string, number>()

  /** The errors of the call, with this one. */
  of({ run_id, path = '', node }: NodeInput): number {
    const key = `${run_id}/${path}/${node}`
    const count = (this.counts.get(key) ?? 0) + 1
    // Forgotten counts begin again, which costs a few attempts more.
    if (this.counts.size >= MOST_COUNTED) this.counts.clear()
    this.counts.set(key, count)
    return count
  }
}

const MOST_COUNTED = 10_000

async function oneAttempt(
  deps: RunNodeDeps,
  input: NodeInput,
  { signal, reach, begun: onBegun }: { signal: AbortSignal; reach: Reach; begun: OnBegun },
): Promise<void> {
  const log = deps.log.child({ run_id: input.run_id, node: input.node })
  const once = <T>(work: (tx: Tenant) => Promise<T>) =>
    deps.db.tenant(input.organization_id, { type: 'workflow_run', id: input.run_id }, work)
  const transact = <T>(work: (tx: Tenant) => Promise<T>) => whenAvailable({ log, signal }, () => once(work))
  const token = randomUUID()
  const begun = await transact((tx) => begin(tx, deps, input, token))
  if (begun === 'settled') return
  // Temporal repeats the attempt, unless the run is paused before: then the workflow that resumes the run does.
  if (begun === 'held') throw failure({ code: 'paused', message: 'The run is to be paused.' }, false)
  if (begun === 'elsewhere')
    throw failure({ code: NOT_MADE.wrongQueue, message: 'Workers of another pool make this call.' }, true)
  // Without the database nobody else can have taken the row.
  onBegun(() => once((tx) => ownsAttempt(tx, input, token)).catch(() => true))
  const { node, attempt, state } = begun
  const start = Date.now()
  const refusal = poolRefusal({ wanted: node.pool, own: deps.pool, allowed: state.pools })
  const none = refusal ?? begun.wait
  const performed = none ? failed(none) : await attemptNode(deps, begun, signal, reach)
  const outcome = waitingIfCutOff(performed.outcome, begun.progress)
  const retryMs = retryDelay(outcome, node, begun.progress.counted)
  const progress = retryMs === undefined ? undefined : begun.progress.toStore()
  const result = { input, token, node, attempt, run: state.run, start, end: Date.now(), retryMs, progress }
  await transact((tx) => record(tx, { ...result, performed: { ...performed, outcome } })).catch(
    async (error: unknown) => {
      if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error
      log.error({ err: error }, 'the result of a node could not be recorded')
      const final = { ...result, retryMs: undefined, performed: failed(NOT_RECORDABLE) }
      await transact((tx) => record(tx, final))
    },
  )
  // A transaction of its own: it locks the run, which segments lock before the nodes.
  if (retryMs !== undefined)
    await transact(async (tx) => {
      if (outcome.status === 'failed' && outcome.waits) await sleepForTurns(tx, input.run_id)
      await refreshStopping(tx, input.run_id)
    })
  if (outcome.status === 'failed') throw failure(outcome.error, retryMs === undefined, retryMs)
}

/** Not retryable: the call was made. */
const NOT_RECORDABLE: Failure = {
  error: { code: 'not_recordable', message: 'The database refused the result of the node.' },
  retryable: false,
}

/**
 * A node that was cut off by its timeout between two of its calls has had the time of one call for several: the next
 * attempt goes on at once.
 */
function waitingIfCutOff(outcome: Outcome, progress: AttemptProgress): Outcome {
  const isCutOff = outcome.status === 'failed' && outcome.error.code === 'timeout' && progress.hasGrown
  return isCutOff ? { ...outcome, waits: true } : outcome
}

interface Begun {
  progress: AttemptProgress
  state: RunState
  frame: Frame
  node: ProgramNode
  attempt: number
  /** The start of the node, the same for all attempts. */
  startedAt: Date
  secrets: OpenedSecrets
  /** The attempt has to wait for its turn. */
  wait: Failure | undefined
}

/** Makes this attempt the owner of the row before the call. */
async function begin(
  tx: Tenant,
  { programs, secretsKey, pool: own }: RunNodeDeps,
  input: NodeInput,
  token: string,
): Promise<Begun | 'settled' | 'held' | 'elsewhere'> {
  // Only what the node can read: the attempts of a loop would load the nodes of all its items, each time.
  const state = await lockRun(tx, input.run_id, undefined, input.path ?? '')
  if (!state)
    throw failure({ code: NOT_MADE.unknownRun, message: 'The database does not know this run.' }, true)
  if (state.run.status !== 'running') {
    // After a reset of an ended run, the new Temporal execution reopens the run shortly.
    const reopening = !(await hasOwned(tx, input.run_id, temporalRunId()))
    throw failure({ code: 'run_ended', message: 'The run has ended.' }, !reopening)
  }
  const frame = framesOf(state).frames.get(input.path ?? '')
  const row = frame?.rows.get(input.node)
  const program = await programs.get(tx, state.run.workflow_id!, state.run.workflow_version!)
  const node = program.nodes[input.node]
  // The iteration has ended, because this item or another one failed.
  if (!frame && input.path !== undefined) return 'settled'
  if (!frame || !row || !node)
    throw failure({ code: 'unknown_node', message: 'The run has no node of this id.' }, true)
  if (row.status === 'failed' && row.error) throw failure(row.error, true)
  if (row.status !== 'running') return 'settled'
  // Only the attempt that was being made when the run began to end is repeated, if it was lost.
  if (state.run.ending && !node.role && row.next_attempt_at != null && !row.may_have_called)
    throw failure({ code: 'run_ended', message: 'The run ends.' }, true)
  if (state.run.pause_requested_at !== null) {
    await releaseAttempt(tx, input)
    return 'held'
  }
  if (isInWrongQueue({ wanted: node.pool, own, allowed: state.pools })) {
    await releaseAttempt(tx, input)
    return 'elsewhere'
  }
  // The current values: the next attempt uses those that are replaced meanwhile.
  const secrets = await openSecrets(tx, secretsKey)
  const progress = new AttemptProgress(await beginAttempt(tx, input, token), row.attempt)
  const wait = node.rate && (await turnOf(tx, input, state.run.workflow_id!, node.rate))
  const { attempt, started_at } = row
  return { state, frame, node, attempt, startedAt: new Date(started_at), secrets, progress, wait }
}

/** Takes the turn of a call. @returns the wait if it has not come. */
async function turnOf(
  tx: Tenant,
  { run_id, path = '', node }: NodeInput,
  workflowId: string,
  rate: NonNullable<ProgramNode['rate']>,
): Promise<Failure | undefined> {
  const turn = await takeNodeTurn(tx, { run_id, path, node_id: node, workflow_id: workflowId }, rate)
  if (turn.begun) return undefined
  const least = turn.before === MOST_WAITING_COUNTED ? 'at least ' : ''
  const before = turn.before === 1 ? '1 call is' : `${least}${turn.before} calls are`
  const message = `The call waits for its turn: \`rate\` lets ${rate.limit} begin within ${rate.per_ms / 1_000} s, and ${before} before it.`
  return { error: { code: CALL_TURN, message }, retryable: true, retryAfterMs: turn.waitMs, waits: true }
}

/** Temporal reads no delay as that of its own retry policy. */
const AT_ONCE_MS = 1

/** The delay of the next attempt by the node's retry policy; undefined if there is none. */
function retryDelay(outcome: Outcome, node: ProgramNode, attempt: number): number | undefined {
  const { max_attempts, initial_interval_ms, backoff, max_interval_ms } = node.retry
  if (outcome.status !== 'failed') return undefined
  if (outcome.waits) return outcome.retryAfterMs ?? AT_ONCE_MS
  if (!outcome.retryable || attempt >= max_attempts) return undefined
  const own = Math.min(initial_interval_ms * backoff ** (attempt - 1), max_interval_ms)
  return Math.max(own, outcome.retryAfterMs ?? 0)
}

/** Throws a retryable failure if another attempt owns the row, or this one has recorded it without learning of it. */
async function record(
  tx: Tenant,
  {
    input,
    token,
    node,
    attempt,
    run,
    start,
    end,
    retryMs,
    progress,
    performed: { outcome, raised, received },
  }: {
    input: NodeInput
    token: string
    node: ProgramNode
    attempt: number
    run: RunState['run']
    start: number
    end: number
    retryMs: number | undefined
    progress: KeptProgress | undefined
    performed: Performed
  },
): Promise<void> {
  const at = { path: input.path ?? '', node_id: node.id, node_type: node.type, attempt }
  traceNode(tx, run, at, { start, end, failed: outcome.status === 'failed', calls: true })
  const ended_at = new Date().toISOString()
  const update = (change: Parameters<typeof updateNode>[3]) =>
    updateNode(tx, input, token, { input: outcome.input, ...change })
  if (outcome.status === 'failed') {
    const next = retryMs !== undefined && {
      attempt: outcome.waits ? attempt : attempt + 1,
      at: new Date(Date.now() + retryMs),
    }
    const change = next
      ? { next, ...(progress && { progress }) }
      : ({ status: 'failed', ended_at, progress: null } as const)
    const { error } = outcome
    const waited = TURNS.some((code) => code === error.code)
    const result = waited ? null : attemptResult({ ended_at, error, next_attempt_at: next ? next.at : null })
    if (!(await update({ ...change, error, result }))) throw SUPERSEDED()
    return
  }
  const handle = 'handle' in outcome ? outcome.handle : null
  const { output } = outcome
  const result = attemptResult({ ended_at, output })
  const change = {
    status: 'completed',
    output,
    handle,
    error: null,
    ended_at,
    progress: null,
    result,
  } as const
  if (!(await update(change))) throw SUPERSEDED()
  await storeFiles(tx, received)
  await insertEvents(belowNode(tx, run, at), raised)
}

/** The next Temporal attempt, if there is one, finds what became of the row. */
const SUPERSEDED = () => failure({ code: 'superseded', message: 'Another attempt has taken over.' }, false)

async function attemptNode(
  deps: RunNodeDeps,
  { state, frame, node, attempt, startedAt, secrets, progress }: Begun,
  cancelled: AbortSignal,
  reach: Reach,
): Promise<Performed> {
  // Also of a workflow that was saved with a greater plan.
  const timeoutMs = Math.min(node.timeout_ms, (state.max_call_seconds ?? Infinity) * 1_000)
  return withDeadline(timeoutMs, cancelled, async (signal, isOver, hold) => {
    const work = performNode(deps, {
      hold,
      reach,
      node,
      state,
      attempt,
      signal,
      tx: undefined,
      timeoutMs,
      now: startedAt,
      scope: scopeOf(state, frame),
      path: frame.path,
      secrets,
      progress,
    })
    const performed = await Promise.race([work, aborted(signal)]).catch((error: unknown) => {
      if (signal.aborted) return undefined
      if (error instanceof ServiceBusy) throw error
      deps.log.error({ ...causeOf(error), run_id: state.run.id, node: node.id }, 'a node failed unexpectedly')
      return failed(UNEXPECTED)
    })
    if (cancelled.aborted) throw new CancelledFailure('the run has ended')
    if (performed && !(isOver() && performed.outcome.status === 'failed')) return performed
    return failed(exceeded(timeoutMs, timeoutMs < node.timeout_ms), performed?.outcome.input)
  })
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

const temporalRunId = () => Context.current().info.workflowExecution?.runId ?? ''

/** An ApplicationFailure, whose message the history stores: errors of nodes hold no secrets. */
const failure = (error: RunError, last: boolean, delay?: number) =>
  withoutStack(
    ApplicationFailure.create({
      type: error.code,
      message: error.message.slice(0, 1_000),
      nonRetryable: last,
      // Temporal ends an activity whose next attempt has no delay at all, such as a mail whose turn has just come.
      ...(delay === undefined ? {} : { nextRetryDelay: Math.max(1, Math.ceil(delay)) }),
    }),
  )
