import { Context } from '@temporalio/activity'
import { openSecrets } from '../db/access/secrets.ts'
import { insertEvents } from '../db/events/outbox.ts'
import { isOpenRun } from '../db/model/runs/statuses.ts'
import type { Database } from '../db/postgres/connect.ts'
import { isRefusal } from '../db/postgres/sql-state.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import type { Logger } from '../db/process/log.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { recordSegment } from '../db/runs/moves/segments.ts'
import { openTestValues } from '../db/runs/node-tests.ts'
import { lockRun } from '../db/runs/state.ts'
import { storeFiles } from '../db/stored-files/files.ts'
import { NOT_MADE, type NodeTestInput } from '../workflows/bundle/protocol.ts'
import type { Failure, Outcome } from '../workflows/interpret/execute.ts'
import { NodeLog } from '../workflows/interpret/node-log.ts'
import type { RunFacts, RunNode } from '../workflows/interpret/run-state.ts'
import { testScope } from '../workflows/interpret/scope.ts'
import { findNodeType } from '../workflows/nodes/index.ts'
import type { EndStatus } from '../workflows/shared/statuses.ts'
import type { LightCompute, LightWork } from './compute/light-work.ts'
import { type Hold, withDeadline } from './deadline.ts'
import type { EffectFactories } from './effects/define.ts'
import { exceeded, REFUSED } from './explain.ts'
import { withHeartbeat } from './heartbeat.ts'
import { runLightNode } from './light-node.ts'
import { failed, type Performed, performNode } from './perform-node.ts'
import { isInWrongQueue, poolRefusal } from './pool.ts'
import { type CallSlots, NoSlot } from './slots/call-slots.ts'
import { inSlot } from './slots/in-slot.ts'
import { afterChild, NO_FREE_SLOT, performTrial } from './trial.ts'
import { performCases } from './workflow-test.ts'

const TIMEOUT_MS = 60_000
const NODE_ID = 'test'

export interface TestNodeDeps {
  db: Database
  log: Logger
  effects: EffectFactories
  lightWork: LightWork
  /** The slots of the process. */
  slots: CallSlots
  /** Opens the config and the inputs of a test, and the secrets of organizations. 32 bytes. */
  secretsKey: SecretsKey
  /** The time limit of a test; default: a minute. */
  nodeTestMs?: number | undefined
  /** The pool of this worker, if it is in one. */
  pool?: string | undefined
}

/**
 * Runs one node on sample inputs, a light one in one transaction, and records its outcome. The outputs of the test hold
 * its log.
 */
export function createTestNode(deps: TestNodeDeps) {
  return async function testOneNode({ organization_id, test_id }: NodeTestInput): Promise<EndStatus> {
    const { info } = Context.current()
    const transact = <T>(work: (tx: Tenant) => Promise<T>) =>
      deps.db.tenant(organization_id, { type: 'workflow_run', id: test_id }, work)
    return withHeartbeat(async (cancelled) => {
      const state = await transact((tx) => lockRun(tx, test_id, undefined))
      const { run } = state ?? {}
      if (!state || !run?.node) return 'lost'
      if (!isOpenRun(run.status)) return run.status
      const tested = { ...state, run: { ...run, node: run.node } }
      const host = { transact, temporalRunId: info.workflowExecution?.runId ?? '' }
      const ms = deps.nodeTestMs ?? TIMEOUT_MS
      return withDeadline(ms, cancelled, (signal, isOver, hold) =>
        performTest(deps, tested, { signal, isOver, hold, ms }, host),
      )
    })
  }
}

type Tested = RunFacts & { run: { node: NonNullable<RunFacts['run']['node']> } }

async function performTest(
  deps: TestNodeDeps,
  state: Tested,
  { signal, isOver, hold, ms }: { signal: AbortSignal; isOver: () => boolean; hold: Hold; ms: number },
  host: { transact<T>(work: (tx: Tenant) => Promise<T>): Promise<T>; temporalRunId: string },
): Promise<EndStatus> {
  const { run, organization, env } = state
  const { node_type } = run.node
  const values = openTestValues(deps.secretsKey, run.node)
  const { config, inputs } = values ?? { config: {}, inputs: {} }
  const node = {
    id: NODE_ID,
    type: node_type,
    config,
    effect: findNodeType(node_type)?.effectClass(config) ?? 'pure',
  }
  const now = new Date()
  const started = performance.now()
  const scope = testScope(inputs, {
    run: { id: run.id, workflow_name: run.workflow_name, started_at: now.toISOString() },
    org: organization,
    env,
  })
  // A new log for each attempt: a deadlock repeats the transaction.
  let log = new NodeLog()
  const attempt = { node, path: '', state, scope, now, signal, report: (line: string) => log.add(line) }
  const perform = (tx: Tenant, compute: LightCompute): Promise<Performed> => {
    log = new NodeLog()
    return runLightNode(deps, tx, { ...attempt, compute })
  }
  const performExternal = async (): Promise<Performed> => {
    const secrets = await host.transact((tx) => openSecrets(tx, deps.secretsKey))
    const external = { secrets, tx: undefined, attempt: 1, timeoutMs: ms, hold }
    // The time of the test counts the wait for a slot: somebody waits for its answer.
    const performed = await inSlot(deps.slots, { organizationId: organization.id, signal }, (reach) =>
      performNode(deps, { ...attempt, ...external, reach }),
    ).catch((error: unknown) => {
      if (error instanceof NoSlot) return failed(NO_FREE_SLOT)
      if (isOver()) return failed(exceeded(ms))
      throw error
    })
    // The library of an aborted call may throw any error.
    if (!isOver() || performed.outcome.status !== 'failed') return performed
    return failed(exceeded(ms), performed.outcome.input)
  }
  const record = async (tx: Tenant, { outcome, raised, received }: Performed): Promise<EndStatus> => {
    log.ended(outcome)
    const duration = performance.now() - started
    await storeFiles(tx, received)
    await recordSegment(tx, run.id, {
      ...recordOf(run.node, outcome, { log, duration }),
      temporal_run_id: host.temporalRunId,
      events: raised,
    })
    return statusOf(outcome)
  }
  const placement = { wanted: run.node.pool, own: deps.pool, allowed: state.pools }
  const refusal = isInWrongQueue(placement) ? GRANTED_LATER : poolRefusal(placement)
  if (refusal) return host.transact((tx) => record(tx, failed(refusal)))
  if (!values) return host.transact((tx) => record(tx, failed(NOT_OPENED)))
  if (node.effect === 'external') {
    const performed = await performExternal()
    return host.transact((tx) => record(tx, performed))
  }
  if (values.program && values.cases) {
    const { program, cases, stubs = {}, workflow_id = null } = values
    // Placeholders read the name and the id of the workflow.
    const named = { ...state, run: { ...run, workflow_id, workflow_name: run.node.title } }
    const report = (line: string) => log.add(line)
    const options = { deps, state: named, inputs, signal, ms, hold, report, transact: host.transact }
    const performed = await performCases(program, cases, stubs, options)
    return host.transact((tx) => record(tx, performed))
  }
  if (values.program) {
    const options = { deps, state, inputs, signal, ms, hold, transact: host.transact }
    const report = (line: string) => log.add(line)
    const performed = await performTrial(values.program, { ...options, report })
    return host.transact((tx) => record(tx, performed))
  }
  try {
    const waiting: Performed[] = []
    const status = await deps.lightWork.before(organization.id, (compute) =>
      host.transact(async (tx) => {
        const performed = await perform(tx, compute)
        if (!waitsForRun(performed.outcome)) return record(tx, performed)
        // The other run starts when this transaction has committed.
        await insertEvents(tx, performed.raised)
        await storeFiles(tx, performed.received)
        waiting.splice(0, 1, performed)
        return undefined
      }),
    )
    if (status !== undefined) return status
    const outcome = await afterChild(waiting[0]!.outcome, { signal, transact: host.transact })
    return await host.transact((tx) => record(tx, { outcome, raised: [], created: [], received: [] }))
  } catch (error) {
    // PostgreSQL checks deferred constraints at the end of the transaction.
    if (!isRefusal(error)) throw error
    return host.transact((tx) => record(tx, failed(REFUSED)))
  }
}

const waitsForRun = (outcome: Outcome) => outcome.status === 'waiting' && 'child_run_id' in outcome.waits

/** A test is queued once: whoever tests is waiting for it. */
const GRANTED_LATER: Failure = {
  error: {
    code: NOT_MADE.wrongQueue,
    message: 'The organization was given the worker pool after the test had been queued: repeat the test.',
  },
  retryable: false,
}

const NOT_OPENED: Failure = {
  error: {
    code: 'not_opened',
    message: 'The config of the test cannot be opened: the API and the worker need the same SECRETS_KEY.',
  },
  retryable: false,
}

const statusOf = (outcome: Outcome): EndStatus => (outcome.status === 'failed' ? 'failed' : 'completed')

function recordOf(
  node: { node_type: string; title: string },
  outcome: Outcome,
  { log, duration }: { log: NodeLog; duration: number },
) {
  const now = new Date()
  const error = outcome.status === 'failed' ? outcome.error : null
  const row: RunNode = {
    path: '',
    node_id: NODE_ID,
    node_type: node.node_type,
    title: node.title,
    status: outcome.status === 'failed' ? 'failed' : 'completed',
    attempt: 1,
    input: outcome.input,
    output: 'output' in outcome ? outcome.output : null,
    handle: 'handle' in outcome ? outcome.handle : null,
    error,
    wait_until:
      outcome.status === 'waiting' && 'until' in outcome.waits ? outcome.waits.until.toISOString() : null,
    segment: 0,
    settled_segment: 0,
    position: 0,
    started_at: new Date(now.getTime() - duration).toISOString(),
    ended_at: now.toISOString(),
  }
  const status = statusOf(outcome)
  return {
    segment: 0,
    answer: { commands: [{ type: 'end' as const, status }], nodes: [], details: '' },
    nodes: [row],
    end: { status, outputs: { log: log.lines }, error },
  }
}
