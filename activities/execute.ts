import { AppError } from '../db/errors.ts'
import type { Logger } from '../db/log.ts'
import { isRefusal, sqlState } from '../db/postgres/sql-state.ts'
import { checkShape, saidOf } from '../workflows/definition/config.ts'
import { render, type Scope } from '../workflows/expressions/liquid.ts'
import type { RunError } from '../workflows/interpret/run-state.ts'
import { type NodeContext, NodeError, type NodeType } from '../workflows/nodes/define.ts'
import { findNodeType } from '../workflows/nodes/index.ts'
import { masked } from './mask.ts'
import { capped, requireRoom, storable } from './storable.ts'

/** How the try of one node ended. `input` is its config as rendered and masked, where it got that far. */
export type Outcome =
  | { status: 'completed'; input: unknown; output: unknown; handle: string }
  | { status: 'waiting'; input: unknown; output: unknown; handle: string; wait_until: Date }
  | {
      status: 'ended'
      input: unknown
      output: unknown
      end: { status: 'completed' | 'failed'; message?: string }
    }
  | { status: 'failed'; input: unknown; error: RunError; retryable: boolean }

/** The code of a fault of ours: the log says more. */
const INTERNAL = 'internal_error'

/**
 * Renders a node's config and runs it. What its author can act on comes back as `failed`; what may pass (a lost
 * connection, a deadlock) is thrown.
 */
export async function execute(
  node: { type: string; config: Record<string, unknown> },
  scope: Scope,
  context: NodeContext,
  log: Logger,
): Promise<Outcome> {
  let input: unknown = null
  try {
    const type = typeOf(node.type)
    requireRoom(scope.nodes)
    const rendered = capped(render(node.config, scope))
    input = masked(rendered)
    const parsed = type.config.safeParse(rendered)
    if (!parsed.success) throw invalidConfig(type, rendered)
    const result = await type.run(parsed.data, context)
    const output = capped(result.output)
    if ('end' in result) return { status: 'ended', input, output, end: result.end }
    const handle = ('handle' in result && result.handle) || firstHandle(type, node.config)
    if ('wait_until' in result)
      return { status: 'waiting', input, output, handle, wait_until: result.wait_until }
    return { status: 'completed', input, output, handle }
  } catch (error) {
    const failure = storable(explain(error))
    // A call that was cancelled, or took too long, throws whatever its library throws then.
    if (failure.error.code === INTERNAL && !context.signal.aborted)
      log.error(
        { run_id: context.run.id, node: context.node.id, ...causeOf(error) },
        'a node failed unexpectedly',
      )
    return { status: 'failed', input, ...failure }
  }
}

export function typeOf(name: string): NodeType {
  const type = findNodeType(name)
  if (!type) throw new NodeError('unknown_node_type', `There is no node type ${name}.`)
  return type
}

export const firstHandle = (type: NodeType, config: Record<string, unknown>): string =>
  type.handles(config)[0]?.name ?? 'success'

function invalidConfig(type: NodeType, rendered: unknown): NodeError {
  const said = checkShape(type.config, rendered).flatMap((issue) => saidOf(issue, type.type))
  const message = said.map(({ message }) => message).join('; ')
  return new NodeError('invalid_config', message.slice(0, 2_000))
}

/** Where it was thrown; without its message, which may hold values of the run. */
function causeOf(error: unknown) {
  if (!(error instanceof Error)) return { thrown: typeof error }
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line))
  return { error: error.name, stack: frames?.slice(0, 10).join('\n') }
}

/** Rethrows what may pass. */
function explain(error: unknown): { error: RunError; retryable: boolean } {
  if (error instanceof NodeError) {
    const { code, message, details, retryable } = error
    return { error: { code, message, ...(Object.keys(details).length > 0 ? { details } : {}) }, retryable }
  }
  if (error instanceof AppError) return { error: fromAppError(error), retryable: false }
  if (isRefusal(error))
    return { error: { code: 'value_refused', message: 'The database refused a value.' }, retryable: false }
  // A deadlock, a lost connection: the transaction is done again. Anything else is a fault of the node's code.
  if (sqlState(error)) throw error
  return { error: { code: INTERNAL, message: 'The node failed unexpectedly.' }, retryable: true }
}

function fromAppError(error: AppError): RunError {
  const { issues } = error.details
  return {
    code: error.type,
    message: error.message,
    ...(issues ? { details: { issues: issues.map(({ loc, msg, type }) => ({ loc, msg, type })) } } : {}),
  }
}
