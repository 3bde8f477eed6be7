import { Context } from '@temporalio/activity'
import { insertEvents } from '../db/events/outbox.ts'
import type { Logger } from '../db/log.ts'
import type { Database } from '../db/postgres/connect.ts'
import { isRefusal } from '../db/postgres/sql-state.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { recordSegment } from '../db/runs/moves.ts'
import { lockRun } from '../db/runs/state.ts'
import type { RunNode, RunState } from '../workflows/interpret/run-state.ts'
import type { EndStatus } from '../workflows/interpret/statuses.ts'
import type { NodeTestInput } from '../workflows/protocol.ts'
import { contextOf, type Http, type RecordsOf } from './context.ts'
import { execute, type Outcome, typeOf } from './execute.ts'
import { NodeLog } from './node-log.ts'

const TIMEOUT_MS = 60_000
const HEARTBEAT_MS = 3_000

export interface TestNodeDeps {
  db: Database
  log: Logger
  http: Http
  records: RecordsOf
}

/**
 * Runs one node on sample inputs, in one transaction where it is a light one, and records how it ended; the outputs of
 * the test are its log.
 */
export function createTestNode(deps: TestNodeDeps) {
  return async function testOneNode({ organization_id, test_id }: NodeTestInput): Promise<EndStatus> {
    const { cancellationSignal, info, heartbeat } = Context.current()
    const timer = setInterval(() => heartbeat(), HEARTBEAT_MS)
    const transact = <T>(work: (tx: Tenant) => Promise<T>) =>
      deps.db.tenant(organization_id, { type: 'workflow_run', id: test_id }, work)
    const temporalRunId = info.workflowExecution?.runId ?? ''
    const signal = AbortSignal.any([cancellationSignal, AbortSignal.timeout(TIMEOUT_MS)])
    try {
      const state = await transact((tx) => lockRun(tx, test_id, undefined))
      const node = state?.run.node
      if (!state || !node) return 'lost'
      if (state.run.status !== 'queued' && state.run.status !== 'running') return state.run.status
      const type = typeOf(node.node_type)
      const effect = typeof type.effect === 'function' ? type.effect(node.config) : type.effect
      const told = new NodeLog()
      const run = (tx: Tenant | undefined) =>
        runOnce(
          state,
          node,
          signal,
          {
            ...(tx ? { records: told.records(deps.records(tx)) } : {}),
            ...(tx && effect === 'write' ? { emit: told.emit(emitter(tx)) } : {}),
            ...(effect === 'external'
              ? { http: told.http((request) => deps.http(request, { signal, timeoutMs: TIMEOUT_MS })) }
              : {}),
          },
          deps.log,
        )
      const started = performance.now()
      const record = (tx: Tenant, outcome: Outcome) => {
        const duration = performance.now() - started
        told.ended(outcome)
        return recordSegment(tx, test_id, recordOf(node, outcome, told, temporalRunId, duration))
      }
      if (effect === 'pure' || effect === 'external') {
        const outcome = await run(undefined)
        await transact((tx) => record(tx, outcome))
        return statusOf(outcome)
      }
      return await inOneTransaction(transact, run, record)
    } finally {
      clearInterval(timer)
    }
  }
}

/** What a failed node wrote is undone; only how it failed is recorded. */
async function inOneTransaction(
  transact: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
  run: (tx: Tenant) => Promise<Outcome>,
  record: (tx: Tenant, outcome: Outcome) => Promise<void>,
): Promise<EndStatus> {
  let failed: Outcome | undefined
  try {
    return await transact(async (tx) => {
      const outcome = await run(tx)
      if (outcome.status === 'failed') {
        failed = outcome
        throw new Error('rolled back')
      }
      await record(tx, outcome)
      return statusOf(outcome)
    })
  } catch (error) {
    if (!failed && !isRefusal(error)) throw error
    const refused = { code: 'value_refused', message: 'The database refused a value.' }
    const outcome = failed ?? { status: 'failed', input: null, error: refused, retryable: false }
    await transact((tx) => record(tx, outcome))
    return 'failed'
  }
}

function runOnce(
  state: RunState,
  node: { node_type: string; config: Record<string, unknown> },
  signal: AbortSignal,
  effects: Parameters<typeof contextOf>[1]['effects'],
  log: Logger,
): Promise<Outcome> {
  const context = contextOf(state, { now: new Date(), node: { id: 'test', attempt: 1 }, signal, effects })
  const scope = {
    trigger: {},
    inputs: {},
    nodes: {},
    ...state.run.inputs,
    run: { id: state.run.id, workflow_name: state.run.workflow_name, started_at: context.now.toISOString() },
    org: state.organization,
    env: {},
  }
  return execute({ type: node.node_type, config: node.config }, scope, context, log)
}

const emitter = (tx: Tenant) => async (name: string, data: Record<string, unknown>) =>
  (await insertEvents(tx, [{ name, data }]))[0]!

const statusOf = (outcome: Outcome): EndStatus => (outcome.status === 'failed' ? 'failed' : 'completed')

function recordOf(
  node: { node_type: string; title: string },
  outcome: Outcome,
  { lines }: NodeLog,
  temporalRunId: string,
  duration: number,
) {
  const now = new Date()
  const error = outcome.status === 'failed' ? outcome.error : null
  const row: RunNode = {
    node_id: 'test',
    node_type: node.node_type,
    title: node.title,
    status: outcome.status === 'failed' ? 'failed' : 'completed',
    attempt: 1,
    input: outcome.input,
    output: 'output' in outcome ? outcome.output : null,
    handle: 'handle' in outcome ? outcome.handle : null,
    error,
    wait_until: outcome.status === 'waiting' ? outcome.wait_until.toISOString() : null,
    segment: 0,
    settled_segment: 0,
    position: 0,
    started_at: new Date(now.getTime() - duration).toISOString(),
    ended_at: now.toISOString(),
  }
  const status = statusOf(outcome)
  return {
    temporal_run_id: temporalRunId,
    segment: 0,
    answer: { commands: [{ type: 'end' as const, status }], nodes: [], details: '' },
    events: [],
    nodes: [row],
    end: { status, outputs: { log: lines }, error },
  }
}
