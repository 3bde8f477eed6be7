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
import { openTestValues, type TestValues } from '../db/runs/node-tests.ts'
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
        new NodeTest(deps, tested, { signal, isOver, hold, ms }, host).perform(),
      )
    })
  }
}

type Tested = RunFacts & { run: { node: NonNullable<RunFacts['run']['node']> } }

interface Limits {
  signal: AbortSignal
  isOver: () => boolean
  hold: Hold
  ms: number
}

interface Host {
  transact<T>(work: (tx: Tenant) => Promise<T>): Promise<T>
  temporalRunId: string
}

/** One test, from its sealed values to its recorded outcome. */
class NodeTest {
  private readonly deps: TestNodeDeps
  private readonly state: Tested
  private readonly limits: Limits
  private readonly host: Host
  private readonly started = performance.now()
  private log = new NodeLog()
  private readonly report = (line: string) => this.log.add(line)

  constructor(deps: TestNodeDeps, state: Tested, limits: Limits, host: Host) {
    this.deps = deps
    this.state = state
    this.limits = limits
    this.host = host
  }

  /** Performs the test by the kind of node or program that it has, and records its outcome. */
  async perform(): Promise<EndStatus> {
    const refusal = this.refusal()
    if (refusal) return this.end(failed(refusal))
    const values = openTestValues(this.deps.secretsKey, this.state.run.node)
    if (!values) return this.end(failed(NOT_OPENED))
    const attempt = this.attemptOf(values)
    if (attempt.node.effect === 'external') return this.end(await this.performExternal(attempt))
    if (values.program && values.cases) return this.end(await this.performCases(values))
    if (values.program) return this.end(await this.performProgram(values))
    return this.performLight(attempt)
  }

  private refusal(): Failure | undefined {
    const placement = {
      wanted: this.state.run.node.pool,
      own: this.deps.pool,
      allowed: this.state.pools,
    }
    return isInWrongQueue(placement) ? GRANTED_LATER : poolRefusal(placement)
  }

  private attemptOf({ config, inputs }: TestValues) {
    const { run, organization, env } = this.state
    const { node_type } = run.node
    const effect = findNodeType(node_type)?.effectClass(config) ?? 'pure'
    const now = new Date()
    const scope = testScope(inputs, {
      run: { id: run.id, workflow_name: run.workflow_name, started_at: now.toISOString() },
      org: organization,
      env,
    })
    return {
      node: { id: NODE_ID, type: node_type, config, effect },
      path: '',
      state: this.state,
      scope,
      now,
      signal: this.limits.signal,
      report: this.report,
    }
  }

  private async performExternal(attempt: ReturnType<NodeTest['attemptOf']>): Promise<Performed> {
    const { deps, host } = this
    const { signal, isOver, hold, ms } = this.limits
    const secrets = await host.transact((tx) => openSecrets(tx, deps.secretsKey))
    const external = { secrets, tx: undefined, attempt: 1, timeoutMs: ms, hold }
    const turn = { organizationId: this.state.organization.id, signal }
    // The time of the test counts the wait for a slot: somebody waits for its answer.
    const performed = await inSlot(deps.slots, turn, (reach) =>
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

  private performCases(values: TestValues) {
    const { program, cases, stubs = {}, workflow_id = null, inputs } = values
    const { run } = this.state
    // Placeholders read the name and the id of the workflow.
    const named = { ...this.state, run: { ...run, workflow_id, workflow_name: run.node.title } }
    return performCases(program!, cases!, stubs, { ...this.trial(inputs), state: named })
  }

  private performProgram({ program, inputs }: TestValues) {
    return performTrial(program!, this.trial(inputs))
  }

  private trial(inputs: TestValues['inputs']) {
    const { signal, hold, ms } = this.limits
    const { deps, state, report } = this
    return { deps, state, inputs, signal, ms, hold, report, transact: this.host.transact }
  }

  /** Performs a light node in the transaction that records its outcome. */
  private async performLight(attempt: ReturnType<NodeTest['attemptOf']>): Promise<EndStatus> {
    const { deps, host } = this
    const { organization } = this.state
    const perform = (tx: Tenant, compute: LightCompute): Promise<Performed> => {
      // A new log for each attempt: a deadlock repeats the transaction.
      this.log = new NodeLog()
      return runLightNode(deps, tx, { ...attempt, compute })
    }
    try {
      const waiting: Performed[] = []
      const status = await deps.lightWork.before(organization.id, (compute) =>
        host.transact(async (tx) => {
          const performed = await perform(tx, compute)
          if (!waitsForRun(performed.outcome)) return this.record(tx, performed)
          // The other run starts when this transaction has committed.
          await insertEvents(tx, performed.raised)
          await storeFiles(tx, performed.received)
          waiting.splice(0, 1, performed)
          return undefined
        }),
      )
      if (status !== undefined) return status
      const { signal } = this.limits
      const outcome = await afterChild(waiting[0]!.outcome, { signal, transact: host.transact })
      return await this.end({ outcome, raised: [], created: [], received: [] })
    } catch (error) {
      // PostgreSQL checks deferred constraints at the end of the transaction.
      if (!isRefusal(error)) throw error
      return this.end(failed(REFUSED))
    }
  }

  private end(performed: Performed): Promise<EndStatus> {
    return this.host.transact((tx) => this.record(tx, performed))
  }

  private async record(tx: Tenant, { outcome, raised, received }: Performed): Promise<EndStatus> {
    const { run } = this.state
    this.log.ended(outcome)
    const duration = performance.now() - this.started
    await storeFiles(tx, received)
    await recordSegment(tx, run.id, {
      ...recordOf(run.node, outcome, { log: this.log, duration }),
      temporal_run_id: this.host.temporalRunId,
      events: raised,
    })
    return statusOf(outcome)
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
