import { type EffectName, type Effects, effectNames, ports } from '../effects/index.ts'
import type { EffectClass, ProgramNode } from '../language/definition.ts'
import { render, renderEach, type Scope } from '../language/expressions/liquid.ts'
import { NodeError } from '../language/node-error.ts'
import { type Compute, computeHere } from '../nodes/computations.ts'
import type { NodeContext, Progress } from '../nodes/define.ts'
import { nodeKey } from './frames.ts'
import type { RunFacts } from './run-state.ts'

/** Creates the declared effects that the effect class of the node allows. */
export function effectsFor(
  declared: readonly EffectName[],
  effectClass: EffectClass,
  make: <Name extends EffectName>(name: Name) => Effects[Name],
): Partial<Effects> {
  const allowed = declared.filter((name) => ports[name].classes.includes(effectClass))
  return Object.fromEntries(allowed.map((name) => [name, make(name)]))
}

export interface ContextOptions {
  run: Pick<RunFacts['run'], 'id' | 'workflow_id' | 'workflow_name' | 'retry_of' | 'key_runs'>
  organization: Pick<RunFacts['organization'], 'id' | 'currency' | 'timezone'>
  /** The time of the segment. */
  now: Date
  /** `path` is the iteration; '' or absent outside of any loop. */
  node: {
    id: string
    attempt: number
    path?: string
    role?: ProgramNode['role'] | undefined
    undoes?: string | undefined
  }
  signal: AbortSignal
  /** The scope of texts that the node renders itself. */
  scope?: Scope
  /** Default: computes at once. */
  compute?: Compute | undefined
  /** Default: keeps nothing. */
  progress?: Progress | undefined
  /** Default: masks nothing. */
  hide?: NodeContext['hide'] | undefined
  effects: Partial<Effects>
}

const NO_PROGRESS: Progress = { kept: undefined, keep() {}, isDue: () => false }

/** The prototype of a context, in which access to any effect throws. */
const NO_EFFECTS = Object.create(
  null,
  Object.fromEntries(
    effectNames.map((name) => [
      name,
      {
        get() {
          throw new NodeError('effect_not_allowed', `A node of this type and effect class has no ${name}.`)
        },
      },
    ]),
  ),
)

/** The context of a node. Access to an effect that is not in `effects` throws NodeError `effect_not_allowed`. */
export function contextOf({
  run,
  organization,
  effects,
  node,
  scope = {},
  compute = computeHere,
  progress = NO_PROGRESS,
  hide = () => {},
  ...facts
}: ContextOptions): NodeContext {
  const context = {
    ...facts,
    node: { id: node.id, attempt: node.attempt },
    run: { id: run.id, workflow_id: run.workflow_id, workflow_name: run.workflow_name },
    organization: { id: organization.id, currency: organization.currency, timezone: organization.timezone },
    idempotencyKey: `${keyRunOf(run, node)}:${nodeKey(node.path ?? '', node.id)}`,
    compute,
    progress,
    hide,
    renderWith: (text: string, values: Scope) => render(text, { ...scope, ...values }),
    renderItems: (text: string, items: readonly unknown[]) => renderEach(text, scope, items, organization.id),
    ...effects,
  }
  return Object.setPrototypeOf(context, NO_EFFECTS)
}

/**
 * The run whose id a node's idempotency key has. Retries keep that of the first run, so that a call is not made twice,
 * except for `renewedNodes`; an undo belongs to the effect that it compensates.
 */
function keyRunOf(
  { id, retry_of, key_runs }: ContextOptions['run'],
  { id: node, role, undoes }: ContextOptions['node'],
): string {
  if (role && undoes === undefined) return id
  return key_runs?.[undoes ?? node] ?? retry_of ?? id
}
