import { checkShape, describeIssue } from '../language/config.ts'
import { render, renderTainted, type Scope } from '../language/expressions/liquid.ts'
import { SECRETS_ROOT } from '../language/expressions/secrets.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { NodeError } from '../language/node-error.ts'
import type { NodeContext, NodeEnd, NodeLoop, NodeTurns, NodeType } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import { hideSecretPlaces } from '../nodes/secret-places.ts'
import type { WaitFor } from '../nodes/wait-for.ts'
import { isObject } from '../shared/is-object.ts'
import type { Redactor } from '../shared/redactor.ts'
import type { Limits } from '../shared/run-limits.ts'
import { capture, splitLate } from './late.ts'
import { masked } from './mask.ts'
import { type NodeSecrets, refuseSecrets } from './node-secrets.ts'
import type { RunError } from './run-state.ts'
import { capped, measured, requireRoom, storable } from './storable.ts'

/** How one attempt of a node ended. */
export type Outcome = Ended & {
  /** The characters of its input and output as JSON. */
  characters?: number
}

/** `input` is the node's config, rendered and masked; null if rendering failed. */
type Ended =
  | { status: 'completed'; input: unknown; output: unknown; handle: string }
  | { status: 'waiting'; input: unknown; output: unknown; handle: string; waits: Waits }
  | {
      status: 'ended'
      input: unknown
      output: unknown
      end: NodeEnd
    }
  | { status: 'looping'; input: unknown; output: unknown; handle: string; loop: NodeLoop | NodeTurns }
  | ({ status: 'failed'; input: unknown } & Failure)

/** What a node waits for: a time, the end of a child run, or an answer. `values`: the scope of its late texts. */
export type Waits = { until: Date } | { child_run_id: string } | { for: WaitFor; values: Scope }

export interface Failure {
  error: RunError
  /** Whether another attempt may succeed. */
  retryable: boolean
  /** The least delay until the next attempt. */
  retryAfterMs?: number
  /** It waits for its turn: another attempt follows after `retryAfterMs`, and this one does not count. */
  waits?: true
}

export interface ExecuteOptions {
  limits: Limits
  /** Turns an error that is not a NodeError into a failure, or throws it if the whole segment must be repeated. */
  explain(error: unknown): Failure
  /** Only for nodes that call other services; the outcome is masked. */
  secrets?: NodeSecrets | undefined
}

type Executed = { type: string; config: Record<string, unknown> }

/** Renders a node's config and runs it. Errors become a `failed` outcome; throws only what `explain` throws. */
export async function execute(
  node: Executed,
  scope: Scope,
  context: NodeContext,
  options: ExecuteOptions,
): Promise<Outcome> {
  const written = { characters: 0 }
  const ended = await attempt(node, scope, context, options, written)
  const outcome = Object.assign(ended, written)
  return options.secrets ? redacted(outcome, options.secrets.redactor) : outcome
}

async function attempt(
  node: Executed,
  scope: Scope,
  context: NodeContext,
  { limits, explain, secrets }: ExecuteOptions,
  written: { characters: number },
): Promise<Ended> {
  let input: unknown = null
  try {
    const type = typeOf(node.type)
    requireRoom(scope.nodes, limits)
    const { now, late } = splitLate(type, node.config)
    const config = renderMasked(now, scope, limits, secrets)
    written.characters += config.characters
    const rendered = { ...(config.rendered as object), ...late }
    secrets?.hide(hideSecretPlaces(rendered, rendered).values)
    input = masked({ ...(config.shown as object), ...late })
    const parsed = type.config.safeParse(rendered)
    if (!parsed.success) throw invalidConfig(type, rendered, node.config)
    const result = await type.run(parsed.data, context)
    const { value: output, characters } = measured(result.output, limits.valueBytes)
    written.characters += characters
    if ('end' in result) return { status: 'ended', input, output, end: result.end }
    const handle = ('handle' in result && result.handle) || firstHandle(type, node.config)
    if ('loop' in result) return { status: 'looping', input, output, handle, loop: result.loop }
    if ('turns' in result) return { status: 'looping', input, output, handle, loop: result.turns }
    if ('wait_until' in result)
      return { status: 'waiting', input, output, handle, waits: { until: result.wait_until } }
    if ('wait_for_run' in result)
      return { status: 'waiting', input, output, handle, waits: { child_run_id: result.wait_for_run } }
    if ('wait_for' in result) {
      const waits = { for: result.wait_for, values: capture(type, node.config, scope) }
      return { status: 'waiting', input, output, handle, waits }
    }
    return { status: 'completed', input, output, handle }
  } catch (error) {
    const failure = error instanceof NodeError ? failureOf(error) : explain(error)
    return { status: 'failed', input, ...storable(failure) }
  }
}

/** The rendered config, and `shown`, the config to store, with a mask for each placeholder that reads a secret. */
function renderMasked(
  config: Record<string, unknown>,
  scope: Scope,
  { valueBytes }: Limits,
  secrets: NodeSecrets | undefined,
): { rendered: unknown; shown: unknown; characters: number } {
  if (!secrets) {
    refuseSecrets(config)
    const { value: rendered, characters } = measured(render(config, scope), valueBytes)
    return { rendered, shown: rendered, characters }
  }
  const values = secrets.readBy(config)
  const { rendered, tainted } = renderTainted(config, { ...scope, [SECRETS_ROOT]: values })
  for (const text of tainted.texts()) secrets.redactor.add(text)
  const { value: shown, characters } = measured(tainted.shown(rendered), valueBytes)
  return { rendered: capped(rendered, valueBytes), shown, characters }
}

function redacted(outcome: Outcome, redactor: Redactor): Outcome {
  const input = redactor.value(outcome.input)
  if (outcome.status !== 'failed') return { ...outcome, input, output: redactor.value(outcome.output) }
  const { code, ...error } = outcome.error
  return { ...outcome, input, error: { code, ...redactor.value(error) } }
}

/** Throws NodeError `unknown_node_type`. */
export function typeOf(name: string): NodeType {
  const type = findNodeType(name)
  if (!type) throw new NodeError('unknown_node_type', `There is no node type ${name}.`)
  return type
}

/** The handle by which a node leaves unless it chooses another. */
export const firstHandle = (type: NodeType, config: Record<string, unknown>): string =>
  type.handles(config).find(({ name }) => name !== type.body)?.name ?? 'success'

/** Describes what a loop is about to do. */
export const describeLoop = (loop: NodeLoop | NodeTurns): string => {
  if ('max_turns' in loop)
    return `run its body until its condition holds, ${loop.max_turns === 1 ? 'once' : `${loop.max_turns} times`} at most`
  const { items, concurrency } = loop
  return `run its body for ${items.length} items, ${Math.max(1, Math.min(concurrency, items.length))} at a time`
}

/** What to write for a placeholder whose value is null. */
const MAY_BE_EMPTY =
  ': its placeholder is null, so write `| omit_if_empty` to leave it out, or `| default: …`'
const NEEDS_VALUE = ': its placeholder is null: test it before, such as by `when: "{{ … != null }}"`'

/** What to write for a placeholder whose value is no list. */
const MAY_BE_ONE = ': XML and forms have no list of one item; if it is one, `| compact` makes a list of it'

/** Keys without which a node reads or awaits more than was meant. */
const NARROWING = ['record_id', 'filters']

/** Whether a node does the same without the key. */
function mayBeLeftOut(type: NodeType, rendered: unknown, [key, ...path]: readonly PropertyKey[]): boolean {
  if (NARROWING.includes(String(key))) return false
  if (path.length > 0 || !isObject(rendered)) return true
  const { [String(key)]: _, ...rest } = rendered
  return checkShape(type.config, rest).every((issue) => issue.path[0] !== key)
}

const isPlaceholder = (authored: unknown, path: readonly PropertyKey[]): boolean => {
  const at = path.reduce<unknown>(
    (value, key) =>
      isObject(value) || Array.isArray(value) ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    authored,
  )
  return typeof at === 'string' && hasPlaceholder(at)
}

function invalidConfig(type: NodeType, rendered: unknown, authored: unknown): NodeError {
  const problems = checkShape(type.config, rendered).flatMap((issue) => describeIssue(issue, type.type))
  const message = problems
    .map(({ message, path }) => {
      if (!isPlaceholder(authored, path)) return message
      if (/must be a list, but is /.test(message)) return `${message}${MAY_BE_ONE}`
      if (!/\bempty$/.test(message)) return message
      return `${message}${mayBeLeftOut(type, rendered, path) ? MAY_BE_EMPTY : NEEDS_VALUE}`
    })
    .join('; ')
  return new NodeError('invalid_config', message.slice(0, 2_000))
}

function failureOf({ code, message, details, retryable, retryAfterMs, waits }: NodeError): Failure {
  return {
    error: { code, message, ...(Object.keys(details).length > 0 ? { details } : {}) },
    retryable,
    ...(retryAfterMs > 0 ? { retryAfterMs } : {}),
    ...(waits ? { waits } : {}),
  }
}
