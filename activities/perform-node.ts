import type { NewEvent } from '../db/model/events/event.ts'
import { nodeSpanId, type Traces } from '../db/model/spans.ts'
import type { Logger } from '../db/process/log.ts'
import type { ReceivedFile } from '../db/stored-files/files.ts'
import { ports } from '../workflows/effects/index.ts'
import { narrated, type Report, redacted } from '../workflows/effects/narrate.ts'
import { contextOf, effectsFor } from '../workflows/interpret/context.ts'
import { execute, type Failure, type Outcome } from '../workflows/interpret/execute.ts'
import { NodeSecrets, type OpenedSecrets } from '../workflows/interpret/node-secrets.ts'
import type { CreatedObject, RunFacts } from '../workflows/interpret/run-state.ts'
import type { EffectClass, ProgramNode } from '../workflows/language/definition.ts'
import type { Scope } from '../workflows/language/expressions/liquid.ts'
import type { Authored, Progress } from '../workflows/nodes/define.ts'
import { findNodeType } from '../workflows/nodes/index.ts'
import { LIMITS } from '../workflows/shared/run-limits.ts'
import { computeInline, type LightCompute } from './compute/light-work.ts'
import type { EffectFactories, EffectHost, Once } from './effects/define.ts'
import { explainError } from './explain.ts'
import { traceparent } from './http/traceparent.ts'

export interface Attempt
  extends Omit<
    EffectHost,
    'raise' | 'received' | 'once' | 'organizationId' | 'runId' | 'traceparent' | 'log' | 'compute'
  > {
  node: { id: string; type: string; config: Authored; effect: EffectClass } & Pick<
    ProgramNode,
    'role' | 'undoes'
  >
  /** The path of its frame: '' outside of any loop. */
  path: string
  /** From 1. */
  attempt: number
  state: RunFacts
  scope: Scope
  /** The time of the segment. */
  now: Date
  /** The objects that the node created before a reset. */
  created?: CreatedObject[] | null
  /** Whether the organization stores as much as its plan allows: nodes that store more then fail. */
  full?: boolean | undefined
  /** Required for light nodes, whose transaction must not wait for a thread. */
  compute?: LightCompute | undefined
  /** Receives a line about each call of an effect; for node tests. */
  report?: Report
  /** What the attempts of an external node keep; default: nothing. */
  progress?: Progress
  /** The secrets of the organization: required for external nodes, unused by all others. */
  secrets?: OpenedSecrets
}

export interface Performed {
  outcome: Outcome
  /** The events to write with the node's row; none if it failed. */
  raised: NewEvent[]
  /** The objects that the node created; none if it failed. */
  created: CreatedObject[]
  /** The files that it received, to store with the node's row; none if it failed. */
  received: ReceivedFile[]
}

export interface NodeDeps {
  effects: EffectFactories
  log: Logger
  /** Absent if traces are not configured. */
  traces?: Traces | undefined
}

/**
 * One attempt of a node, with the effects that its type declares and its class allows. Throws what `explainError`
 * throws.
 */
export async function performNode(
  { effects, log, traces }: NodeDeps,
  {
    node,
    path,
    attempt,
    state,
    scope,
    now,
    report,
    created: earlier,
    secrets: opened,
    compute = computeInline,
    progress,
    ...host
  }: Attempt,
): Promise<Performed> {
  const raised: NewEvent[] = []
  const created: CreatedObject[] = []
  const received: ReceivedFile[] = []
  const type = findNodeType(node.type)
  const secrets = type?.reachesOutside(node.config) ? new NodeSecrets(opened ?? new Map()) : undefined
  const made = effectsFor(type?.effects ?? [], node.effect, (name) => {
    const effect = effects[name]({
      ...host,
      compute,
      log,
      organizationId: state.organization.id,
      runId: state.run.id,
      traceparent: traceparentOf(state.run, { path, node_id: node.id, attempt }, traces),
      raise: (event) => raised.push(event),
      received: (file) => received.push(file),
      once: onceIn({ path, node_id: node.id }, created, earlier ?? []),
    })
    const safe = secrets ? redacted(ports[name], effect, secrets.redactor) : effect
    const tell = report && ((line: string) => report(secrets?.redactor.text(line) ?? line))
    return tell ? narrated(ports[name], safe, tell) : safe
  })
  const context = contextOf({
    run: state.run,
    organization: state.organization,
    now,
    node: { id: node.id, attempt, path, role: node.role, undoes: node.undoes },
    signal: host.signal,
    scope,
    compute,
    progress,
    hide: (texts) => secrets?.hide(texts),
    effects: made,
  })
  const outcome = await execute(node, scope, context, {
    limits: LIMITS,
    secrets,
    explain: (error) =>
      explainError(error, { log, signal: host.signal, run_id: state.run.id, node: node.id }),
  })
  return outcome.status === 'failed'
    ? { outcome, raised: [], created: [], received: [] }
    : { outcome, raised, created, received }
}

/** Without traces, each call has a span id of its own. */
const traceparentOf = (
  { id, trace_id }: RunFacts['run'],
  { path, node_id, attempt }: { path: string; node_id: string; attempt: number },
  traces: Traces | undefined,
) =>
  trace_id === undefined
    ? undefined
    : () => {
        const spanId = traces && nodeSpanId(id, path, node_id, attempt)
        return traceparent({ traceId: trace_id, spanId }, traces)
      }

/** Records the objects that a node creates in `created`, and finds those that it created before. */
const onceIn =
  (
    { path, node_id }: Pick<CreatedObject, 'path' | 'node_id'>,
    created: CreatedObject[],
    earlier: CreatedObject[],
  ): Once =>
  async (object, find, create, idOf, resultOf) => {
    const key = { path, node_id, n: created.length }
    const before = earlier.find((one) => one.path === path && one.node_id === node_id && one.n === key.n)
    const found = before?.object === object ? await find(before.object_id, before.result) : undefined
    const result = found ?? (await create())
    const kept = resultOf ? { result: resultOf(result) } : {}
    created.push({ ...key, object, object_id: idOf(result), ...kept })
    return result
  }

/** The result of an attempt that failed outside of the node. */
export const failed = (failure: Failure, input: unknown = null): Performed => ({
  outcome: { status: 'failed', input, ...failure },
  raised: [],
  created: [],
  received: [],
})
