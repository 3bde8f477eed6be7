import { setTimeout } from 'node:timers/promises'
import { openSecrets } from '../db/access/secrets.ts'
import { insertEvents } from '../db/events/outbox.ts'
import type { NewEvent } from '../db/model/events/event.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { NeedsComputation } from '../db/process/compute/computed.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { findChildEnd } from '../db/runs/children.ts'
import { storeFiles } from '../db/stored-files/files.ts'
import { resultOfChild } from '../workflows/interpret/child-result.ts'
import type { Failure, Outcome } from '../workflows/interpret/execute.ts'
import { nodeKey } from '../workflows/interpret/frames.ts'
import type { ChildEnd, RunFacts } from '../workflows/interpret/run-state.ts'
import { runTrial } from '../workflows/interpret/trial.ts'
import type { Program, ProgramNode } from '../workflows/language/definition.ts'
import type { Scope } from '../workflows/language/expressions/liquid.ts'
import { isObject } from '../workflows/shared/is-object.ts'
import type { LightCompute, LightWork } from './compute/light-work.ts'
import type { Hold } from './deadline.ts'
import { exceeded } from './explain.ts'
import { runLightNode } from './light-node.ts'
import { failed, type NodeDeps, type Performed, performNode } from './perform-node.ts'
import { isInWrongQueue, poolRefusal } from './pool.ts'
import { type CallSlots, NoSlot } from './slots/call-slots.ts'
import { inSlot } from './slots/in-slot.ts'

/** How often the end of a child run is looked up. */
const CHILD_POLL_MS = 200

export interface TrialOptions {
  deps: NodeDeps & {
    secretsKey: SecretsKey
    slots: CallSlots
    lightWork: LightWork
    pool?: string | undefined
  }
  state: RunFacts
  /** Sample values by placeholder root. */
  inputs: Record<string, unknown>
  signal: AbortSignal
  /** The time limit of the test. */
  ms: number
  hold: Hold
  transact<T>(work: (tx: Tenant) => Promise<T>): Promise<T>
  report(line: string): void
}

/** Runs a loop with its body, as a run does: the light nodes of a segment in one transaction, calls outside of it. */
export async function performTrial(program: Program, options: TrialOptions): Promise<Performed> {
  const { inputs, signal, transact, ms } = options
  const facts = factsOf(options)
  const samples = isObject(inputs.nodes) ? (inputs.nodes as Record<string, object>) : {}
  let input: unknown = null
  const { rows, outcome: end } = await runTrial(program, facts, samples, {
    signal,
    report: options.report,
    childEnd: (id) => childEnd(id, options),
    segment: (work) =>
      options.deps.lightWork.before(facts.organization.id, (compute) =>
        transact(async (tx) => {
          let ran = 0
          const raised: NewEvent[] = []
          const result = await work(async (node, scope, path) => {
            const performed = await light(tx, node, scope, path, { ...options, state: facts, compute }).catch(
              (error: unknown) => {
                // As in a run: only the first node of a segment has its transaction begin again.
                if (error instanceof NeedsComputation && ran > 0) return undefined
                throw error
              },
            )
            if (!performed) return 'later'
            ran += 1
            if (node.id === program.start) input = performed.outcome.input
            raised.push(...performed.raised)
            await storeFiles(tx, performed.received)
            return performed.outcome
          })
          await insertEvents(tx, raised)
          return result
        }),
      ),
    call: (node, scope, path) => call(node, scope, path, { ...options, state: facts }),
  })
  const row = rows.get(program.start)
  if (typeof end === 'string' || !row) return failed(exceeded(ms), input)
  const outcome: Outcome =
    row.status === 'completed'
      ? { status: 'completed', input, output: row.output, handle: row.handle ?? '' }
      : { status: 'failed', input, error: row.error ?? UNKNOWN, retryable: false }
  return { outcome, raised: [], created: [], received: [] }
}

const UNKNOWN = { code: 'internal_error', message: 'The test ended without a result.' }

/** The facts of the tested run: the samples are its trigger and its inputs. */
function factsOf({ state, inputs }: TrialOptions): RunFacts {
  const { trigger, inputs: given } = inputs
  return {
    ...state,
    run: {
      ...state.run,
      ...(isObject(trigger) && { trigger: trigger as unknown as RunFacts['run']['trigger'] }),
      inputs: isObject(given) ? given : {},
    },
  }
}

export async function light(
  tx: Tenant,
  node: ProgramNode,
  scope: Scope,
  path: string,
  { deps, state, inputs, signal, report, compute }: TrialOptions & { compute: LightCompute },
): Promise<Performed> {
  // A loop in the body of another one reads the sample of that item.
  const { item, index } = inputs
  const around =
    path === '' ? { ...(item !== undefined && { item }), ...(index !== undefined && { index }) } : {}
  const key = nodeKey(path, node.id)
  const performed = await runLightNode(deps, tx, {
    node,
    path,
    state,
    scope: { ...around, ...scope },
    now: new Date(),
    signal,
    compute,
    report: (line) => report(`${key}: ${line}`),
  })
  if (performed.outcome.status === 'failed') report(`${key}: ${said(performed.outcome)}`)
  return performed
}

export const NO_FREE_SLOT: Failure = {
  error: {
    code: 'no_slot',
    message:
      'No slot was free for the call: the organization, or the service that is called, has as many calls in progress as it may now. Test the node again.',
  },
  retryable: true,
}

/** The worker of a loop's test is in no pool, and must not make the calls of one. */
const OTHER_POOL: Failure = {
  error: {
    code: 'pool_not_tested',
    message: 'The test of a loop makes no calls in a worker pool: test the node alone.',
  },
  retryable: false,
}

/** One attempt of an external node. */
export async function call(
  node: ProgramNode,
  scope: Scope,
  path: string,
  { deps, state, signal, ms, hold, transact, report }: TrialOptions,
): Promise<Outcome> {
  const key = nodeKey(path, node.id)
  const placement = { wanted: node.pool, own: deps.pool, allowed: state.pools }
  const refusal = isInWrongQueue(placement) ? OTHER_POOL : poolRefusal(placement)
  if (refusal) return failed(refusal).outcome
  const secrets = await transact((tx) => openSecrets(tx, deps.secretsKey))
  const turn = { organizationId: state.organization.id, signal }
  const attempt = {
    node,
    path,
    state,
    scope,
    now: new Date(),
    signal,
    secrets,
    tx: undefined,
    attempt: 1,
    timeoutMs: node.timeout_ms,
    hold,
    report: (line: string) => report(`${key}: ${line}`),
  }
  // The time of the test counts the wait for a slot: somebody waits for its answer.
  const { outcome, raised, received } = await inSlot(deps.slots, turn, (reach) =>
    performNode(deps, { ...attempt, reach }),
  ).catch((error: unknown) => {
    if (error instanceof NoSlot) return failed(NO_FREE_SLOT)
    if (signal.aborted) return failed(exceeded(ms))
    throw error
  })
  if (outcome.status === 'failed') report(`${key}: ${said(outcome)}`)
  if (raised.length > 0 || received.length > 0)
    await transact(async (tx) => {
      await storeFiles(tx, received)
      await insertEvents(tx, raised)
    })
  return outcome
}

const said = ({ error }: Outcome & { status: 'failed' }) => `failed: ${error.code}: ${error.message}`

/** Waits for the end of a child run; undefined if the time of the test is over. */
async function childEnd(
  id: string,
  { signal, transact }: Pick<TrialOptions, 'signal' | 'transact'>,
): Promise<ChildEnd | undefined> {
  while (!signal.aborted) {
    const end = await transact((tx) => findChildEnd(tx, id))
    if (end) return end
    await setTimeout(CHILD_POLL_MS, undefined, { signal }).catch(() => {})
  }
  return undefined
}

/** The outcome of a node that waits for a child run, once that has ended; unchanged if the time is over. */
export async function afterChild(
  outcome: Outcome,
  options: Pick<TrialOptions, 'signal' | 'transact'>,
): Promise<Outcome> {
  if (outcome.status !== 'waiting' || !('child_run_id' in outcome.waits)) return outcome
  const end = await childEnd(outcome.waits.child_run_id, options)
  if (!end) return outcome
  const { output, error } = resultOfChild(end)
  const { input, handle } = outcome
  if (error) return { status: 'failed', input, error, retryable: false }
  return { status: 'completed', input, output, handle }
}
