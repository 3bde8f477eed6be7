import { ApplicationFailure, CancelledFailure, Context } from '@temporalio/activity'
import { insertEvents } from '../db/events/outbox.ts'
import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { hasOwned, lockRun, updateNode } from '../db/runs/state.ts'
import type { ProgramNode } from '../workflows/definition/types.ts'
import type { RunError, RunState } from '../workflows/interpret/run-state.ts'
import { scopeOf } from '../workflows/interpret/scope.ts'
import type { NodeInput } from '../workflows/protocol.ts'
import type { EffectFactories } from './effects/define.ts'
import { UNEXPECTED } from './explain.ts'
import { failed, type Performed, performNode } from './perform-node.ts'
import type { Programs } from './programs.ts'

const HEARTBEAT_MS = 3_000

export interface RunNodeDeps {
  db: Database
  log: Logger
  programs: Programs
  effects: EffectFactories
}

/**
 * Renders, runs and records one attempt of an external node; the workflow only learns that it settled. An attempt lost
 * with a dying worker is repeated with the same idempotency key and does not count.
 */
export function createRunNode(deps: RunNodeDeps) {
  return async function runNode(input: NodeInput): Promise<{ status: 'completed' }> {
    const transact = <T>(work: (tx: Tenant) => Promise<T>) =>
      deps.db.tenant(input.organization_id, { type: 'workflow_run', id: input.run_id }, work)

    const begun = await transact((tx) => begin(tx, deps.programs, input))
    if (begun === 'settled') return { status: 'completed' }
    const { state, node, attempt } = begun
    const { outcome, raised } = await withHeartbeat((signal) =>
      attemptNode(deps, state, node, attempt, signal),
    )
    const ended_at = new Date().toISOString()
    if (outcome.status === 'failed') {
      const last = !outcome.retryable || attempt >= node.retry.max_attempts
      await transact((tx) =>
        updateNode(tx, input.run_id, input.node, {
          attempt: last ? attempt : attempt + 1,
          input: outcome.input,
          error: outcome.error,
          ...(last ? { status: 'failed', ended_at } : {}),
        }),
      )
      throw failure(outcome.error, last)
    }
    const handle = 'handle' in outcome ? outcome.handle : null
    await transact(async (tx) => {
      const recorded = await updateNode(tx, input.run_id, input.node, {
        status: 'completed',
        input: outcome.input,
        output: outcome.output,
        handle,
        error: null,
        ended_at,
      })
      if (recorded) await insertEvents(tx, raised)
    })
    return { status: 'completed' }
  }
}

interface Begun {
  state: RunState
  node: ProgramNode
  attempt: number
}

async function begin(tx: Tenant, programs: Programs, input: NodeInput): Promise<Begun | 'settled'> {
  const state = await lockRun(tx, input.run_id, undefined)
  if (state?.run.status !== 'running') {
    // After a reset of an ended run, the new Temporal execution reopens the run shortly.
    const reopening = state !== undefined && !(await hasOwned(tx, input.run_id, temporalRunId()))
    throw failure({ code: 'run_ended', message: 'The run has ended.' }, !reopening)
  }
  const row = state.nodes.find(({ node_id }) => node_id === input.node)
  const program = await programs.get(tx, state.run.workflow_id!, state.run.workflow_version!)
  const node = program.nodes[input.node]
  if (!row || !node) throw failure({ code: 'unknown_node', message: 'The run has no node of this id.' }, true)
  if (row.status === 'failed' && row.error) throw failure(row.error, true)
  if (row.status !== 'running') return 'settled'
  return { state, node, attempt: row.attempt }
}

async function attemptNode(
  deps: RunNodeDeps,
  state: RunState,
  node: ProgramNode,
  attempt: number,
  cancelled: AbortSignal,
): Promise<Performed> {
  const timeout = AbortSignal.timeout(node.timeout_ms)
  const signal = AbortSignal.any([timeout, cancelled])
  const work = performNode(deps, {
    ...{ node, state, attempt, signal, tx: undefined, timeoutMs: node.timeout_ms, now: new Date() },
    scope: scopeOf(state, state.nodes),
  })
  const performed = await Promise.race([work, aborted(signal)]).catch((error: unknown) => {
    if (signal.aborted) return undefined
    deps.log.error({ err: error, run_id: state.run.id, node: node.id }, 'a node failed unexpectedly')
    return failed(UNEXPECTED)
  })
  if (cancelled.aborted) throw new CancelledFailure('the run has ended')
  if (performed && !(timeout.aborted && performed.outcome.status === 'failed')) return performed
  const message = `The node exceeded its timeout of ${node.timeout_ms} ms.`
  return failed({ error: { code: 'timeout', message }, retryable: true }, performed?.outcome.input)
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}

/** Heartbeats deliver cancellations, and let Temporal detect a dead worker early. */
async function withHeartbeat<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current()
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS)
  try {
    return await work(context.cancellationSignal)
  } finally {
    clearInterval(timer)
  }
}

const temporalRunId = () => Context.current().info.workflowExecution?.runId ?? ''

/** The history stores the message: errors of nodes hold no secrets. */
const failure = (error: RunError, last: boolean) =>
  ApplicationFailure.create({
    type: error.code,
    message: error.message.slice(0, 1_000),
    nonRetryable: last,
  })
