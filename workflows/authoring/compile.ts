import { cleanupOf } from '../language/cleanup.ts'
import {
  type Admission,
  CLEANUP_TIMEOUT,
  type CleanupRole,
  type Definition,
  LANGUAGE_ENGINE,
  LATER_LANGUAGE,
  type NodeSpec,
  type Program,
  type ProgramNode,
  type RetryPolicy,
  type RetrySpec,
} from '../language/definition.ts'
import { parseDuration } from '../language/duration.ts'
import { formatsNumber, mayBeOmitted, needsLaterEngine, usesFixed } from '../language/expressions/template.ts'
import { namedPool } from '../language/pool.ts'
import { findNodeType } from '../nodes/index.ts'
import { RUN_KEY } from '../shared/limits.ts'
import { cancelRules } from './cancel-on.ts'
import { keysOf } from './keys.ts'
import { bodiesOf, readResults, textsOf } from './loops.ts'

/** The values that apply if neither the node nor its type sets them. */
export const DEFAULT_RETRY = { max_attempts: 1, initial_interval: '1s', backoff: 2 } satisfies RetrySpec
export const DEFAULT_MAX_INTERVAL = '1m'
export const DEFAULT_TIMEOUT = '30s'

/**
 * Compiles a valid definition. Throws for a definition that would fail every workflow task of a run, for example by a
 * retry policy that Temporal rejects.
 */
export function compile(definition: Definition): Program {
  const cleanup = cleanupOf(definition).map(({ node }) => node)
  const all = [...definition.nodes, ...cleanup]
  const nodes = Object.fromEntries(all.map((node) => [node.id, programNode(node, definition.settings)]))
  if (Object.keys(nodes).length < all.length) throw new Error('two nodes have the same id')
  for (const { from, handle, to } of definition.edges) {
    const [source, destination] = [nodes[from], nodes[to]]
    if (!source || !destination) throw new Error(`the edge ${from} → ${to} names an unknown node`)
    const targets = Object.hasOwn(source.next, handle) ? source.next[handle]! : []
    if (targets.includes(to)) continue
    source.next[handle] = [...targets, to]
    destination.incoming.push(`${from}:${handle}`)
  }
  const bodies = bodiesOf(definition)
  const results = readResults({ ...definition, nodes: all })
  const undone = new Set(cleanup.map(({ undoes }) => undoes))
  for (const node of Object.values(nodes)) {
    const [loop] = bodies.around(node.id)
    if (loop !== undefined) node.loop = loop
    if (!isLoop(node)) continue
    node.collects = results.of(node.id)
    if (undone.has(node.id)) node.undone_early = true
  }
  const start = definition.nodes[0]
  if (!start) throw new Error('a definition needs a node')
  const { concurrency, timeout, expected_within, error_workflow } = definition.settings
  const admission = admissionOf(definition.settings)
  return {
    engine: Math.max(
      LANGUAGE_ENGINE,
      ...all.map(engineOf),
      cleanup.length > 0 ? LATER_LANGUAGE.cleanup : 0,
      Object.values(nodes).some((node) => node.undone_early) ? LATER_LANGUAGE.loop_undo : 0,
      ...Object.values(nodes).map(({ pool }) => (pool === undefined ? 0 : LATER_LANGUAGE.pool)),
      ...Object.values(nodes).map(({ rate }) => (rate === undefined ? 0 : LATER_LANGUAGE.rate)),
      ...[...textsOf({ ...definition, nodes: all }), ...keysOf(definition.settings)].map(({ text }) =>
        needsLaterEngine(text) ? LATER_LANGUAGE.expressions : 0,
      ),
      ...textsOf({ ...definition, nodes: all }).map(({ text }) =>
        mayBeOmitted(text) ? LATER_LANGUAGE.omission : 0,
      ),
      ...textsOf({ ...definition, nodes: all }).map(({ text }) =>
        usesFixed(text) ? LATER_LANGUAGE.to_fixed : 0,
      ),
      ...textsOf({ ...definition, nodes: all }).map(({ text }) =>
        formatsNumber(text) ? LATER_LANGUAGE.format_number : 0,
      ),
      Object.values(definition.inputs).some((input) => input.enum) ? LATER_LANGUAGE.input_enum : 0,
      results.alone ? LATER_LANGUAGE.results : 0,
      admission ? LATER_LANGUAGE.admission : 0,
    ),
    start: start.id,
    nodes,
    outputs: definition.outputs,
    inputs: definition.inputs,
    settings: {
      ...concurrencyOf(concurrency),
      ...(timeout === undefined ? {} : { timeout_ms: milliseconds(timeout) }),
      ...(expected_within === undefined ? {} : { expected_ms: milliseconds(expected_within) }),
      ...(error_workflow === undefined ? {} : { error_workflow }),
      ...(admission && { admission }),
      ...(definition.settings.cancel_on && { cancel_on: cancelRules(definition.settings) }),
    },
    ...(cleanup.length > 0 && { cleanup: cleanupProgram(cleanup, definition.settings) }),
  }
}

function cleanupProgram(
  nodes: NodeSpec[],
  { cleanup_timeout = CLEANUP_TIMEOUT }: Definition['settings'],
): NonNullable<Program['cleanup']> {
  const of = (role: CleanupRole) => nodes.filter((node) => node.role === role).map(({ id }) => id)
  return {
    undo: of('undo'),
    on_cancel: of('on_cancel'),
    finally: of('finally'),
    timeout_ms: milliseconds(cleanup_timeout),
  }
}

const isLoop = ({ type }: ProgramNode): boolean => findNodeType(type)?.body !== undefined

const engineOf = ({ type, config }: NodeSpec): number => findNodeType(type)!.engine(config)

function concurrencyOf(
  given: Definition['settings']['concurrency'],
): Pick<Program['settings'], 'concurrency' | 'on_limit'> {
  if (given === undefined) return {}
  if (typeof given === 'number') return { concurrency: given }
  const { policy, limit = 1, key } = given
  if (policy === 'allow' || key !== undefined) return {}
  return { concurrency: limit, ...(policy === 'queue' ? {} : { on_limit: policy }) }
}

function admissionOf({ concurrency, debounce, rate }: Definition['settings']): Admission | undefined {
  const admission: Admission = {}
  if (typeof concurrency === 'object' && concurrency.policy !== 'allow' && concurrency.key !== undefined) {
    const { key, limit = 1, policy } = concurrency
    admission.concurrency = { key, limit, policy }
  }
  if (debounce)
    admission.debounce = {
      ...(debounce.key === undefined ? {} : { key: debounce.key }),
      for_ms: milliseconds(debounce.for),
      at_most_ms: milliseconds(debounce.at_most ?? RUN_KEY.span),
    }
  if (rate)
    admission.rate = {
      ...(rate.key === undefined ? {} : { key: rate.key }),
      limit: rate.limit,
      per_ms: milliseconds(rate.per),
      policy: rate.policy,
    }
  return Object.keys(admission).length > 0 ? admission : undefined
}

function programNode(node: NodeSpec, settings: Definition['settings']): ProgramNode {
  const type = findNodeType(node.type)
  if (!type) throw new Error(`unknown node type ${node.type}`)
  const effect = type.effectClass(node.config)
  const pool = effect === 'external' ? namedPool(node.pool ?? settings.pool) : undefined
  return {
    id: node.id,
    type: node.type,
    title: node.title ?? node.id,
    effect,
    config: node.config,
    ...(node.when === undefined ? {} : { when: node.when }),
    join: node.join ?? 'all',
    on_error: node.on_error ?? 'fail',
    retry: retryPolicy(node.id, { ...DEFAULT_RETRY, ...type.retry, ...node.retry }),
    timeout_ms: milliseconds(node.timeout ?? DEFAULT_TIMEOUT),
    ...(node.rate && { rate: { limit: node.rate.limit, per_ms: milliseconds(node.rate.per) } }),
    ...(pool === undefined ? {} : { pool }),
    ...(node.role === undefined ? {} : { role: node.role }),
    ...(node.undoes === undefined ? {} : { undoes: node.undoes }),
    next: {},
    incoming: [],
  }
}

/** Temporal requires at least one attempt, intervals above zero, a coefficient of at least 1, and maximum ≥ initial. */
function retryPolicy(id: string, retry: RetrySpec & typeof DEFAULT_RETRY): RetryPolicy {
  const initial = milliseconds(retry.initial_interval)
  const policy = {
    max_attempts: retry.max_attempts,
    initial_interval_ms: initial,
    backoff: retry.backoff,
    max_interval_ms:
      retry.max_interval === undefined
        ? Math.max(initial, milliseconds(DEFAULT_MAX_INTERVAL))
        : milliseconds(retry.max_interval),
  }
  const valid =
    Number.isInteger(policy.max_attempts) &&
    policy.max_attempts >= 1 &&
    policy.initial_interval_ms > 0 &&
    policy.backoff >= 1 &&
    policy.max_interval_ms >= policy.initial_interval_ms
  if (!valid) throw new Error(`the retry policy of ${id} is invalid`)
  return policy
}

function milliseconds(text: string): number {
  const value = parseDuration(text)
  if (!value) throw new Error(`${text} is not a duration above zero`)
  return value
}
