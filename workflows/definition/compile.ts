import { findNodeType } from '../nodes/index.ts'
import { parseDuration } from './duration.ts'
import type { Definition, EffectClass, NodeSpec, Plan, PlanNode, RetryPolicy } from './types.ts'

/** Attempts of a node that says nothing: an external one is tried three times, one inside the transaction once. */
const DEFAULT_ATTEMPTS: Record<EffectClass, number> = { pure: 1, read: 1, write: 1, external: 3 }
const DEFAULT_INTERVAL_MS = 1_000
const DEFAULT_MAX_INTERVAL_MS = 60_000
const DEFAULT_TIMEOUT_MS = 30_000

/**
 * Compiles a definition that validation found valid into all that a run needs to know. What is checked here again
 * would, if it slipped through, fail every task of a run for ever (Temporal's rules for retries), so it throws.
 */
export function compile(definition: Definition): Plan {
  const nodes = Object.fromEntries(definition.nodes.map((node) => [node.id, planNode(node)]))
  for (const { from, handle, to } of definition.edges) {
    const [source, destination] = [nodes[from], nodes[to]]
    if (!source || !destination) throw new Error(`the edge ${from} → ${to} leads nowhere`)
    const targets = Object.hasOwn(source.next, handle) ? source.next[handle]! : []
    if (targets.includes(to)) continue
    source.next[handle] = [...targets, to]
    destination.incoming.push(`${from}:${handle}`)
  }
  const start = definition.nodes[0]
  if (!start) throw new Error('a definition needs a node')
  const { concurrency, timeout } = definition.settings
  return {
    engine: 1,
    start: start.id,
    nodes,
    outputs: definition.outputs,
    inputs: definition.inputs,
    settings: {
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(timeout === undefined ? {} : { timeout_ms: milliseconds(timeout) }),
    },
  }
}

function planNode(node: NodeSpec): PlanNode {
  const type = findNodeType(node.type)
  if (!type) throw new Error(`unknown node type ${node.type}`)
  const effect = typeof type.effect === 'function' ? type.effect(node.config) : type.effect
  return {
    id: node.id,
    type: node.type,
    title: node.title ?? node.id,
    effect,
    config: node.config,
    ...(node.when === undefined ? {} : { when: node.when }),
    join: node.join ?? 'all',
    on_error: node.on_error ?? 'fail',
    retry: retryPolicy(node, effect),
    timeout_ms: node.timeout === undefined ? DEFAULT_TIMEOUT_MS : milliseconds(node.timeout),
    next: {},
    incoming: [],
  }
}

/** Temporal wants at least one attempt, intervals above zero, a coefficient of at least 1, and maximum ≥ initial. */
function retryPolicy({ id, retry = {} }: NodeSpec, effect: EffectClass): RetryPolicy {
  const initial =
    retry.initial_interval === undefined ? DEFAULT_INTERVAL_MS : milliseconds(retry.initial_interval)
  const policy = {
    max_attempts: retry.max_attempts ?? DEFAULT_ATTEMPTS[effect],
    initial_interval_ms: initial,
    backoff: retry.backoff ?? 2,
    max_interval_ms:
      retry.max_interval === undefined
        ? Math.max(initial, DEFAULT_MAX_INTERVAL_MS)
        : milliseconds(retry.max_interval),
  }
  const valid =
    Number.isInteger(policy.max_attempts) &&
    policy.max_attempts >= 1 &&
    policy.initial_interval_ms > 0 &&
    policy.backoff >= 1 &&
    policy.max_interval_ms >= policy.initial_interval_ms
  if (!valid) throw new Error(`the retry policy of ${id} cannot be used`)
  return policy
}

function milliseconds(text: string): number {
  const value = parseDuration(text)
  if (!value) throw new Error(`${text} is not a duration above zero`)
  return value
}
