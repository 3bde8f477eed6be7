import type { NewEvent } from '../db/events/outbox.ts'
import type { Logger } from '../db/log.ts'
import type { EffectClass } from '../workflows/definition/types.ts'
import { ports } from '../workflows/effects/index.ts'
import { narrated, type Report } from '../workflows/effects/narrate.ts'
import type { Scope } from '../workflows/expressions/liquid.ts'
import { contextOf, effectsFor } from '../workflows/interpret/context.ts'
import { execute, type Failure, type Outcome } from '../workflows/interpret/execute.ts'
import { LIMITS } from '../workflows/interpret/limits.ts'
import type { RunFacts } from '../workflows/interpret/run-state.ts'
import type { Authored } from '../workflows/nodes/define.ts'
import { findNodeType } from '../workflows/nodes/index.ts'
import type { EffectFactories, EffectHost } from './effects/define.ts'
import { explainError } from './explain.ts'

export interface Attempt extends Omit<EffectHost, 'raise'> {
  node: { id: string; type: string; config: Authored; effect: EffectClass }
  /** From 1. */
  attempt: number
  state: RunFacts
  scope: Scope
  /** The time of the segment. */
  now: Date
  /** Receives a line about each call of an effect; for node tests. */
  report?: Report
}

export interface Performed {
  outcome: Outcome
  /** The events to write with the node's row; none if it failed. */
  raised: NewEvent[]
}

/** One attempt of a node, with the effects that its type declares and its class allows. Throws what `explainError` throws. */
export async function performNode(
  { effects, log }: { effects: EffectFactories; log: Logger },
  { node, attempt, state, scope, now, report, ...host }: Attempt,
): Promise<Performed> {
  const raised: NewEvent[] = []
  const type = findNodeType(node.type)
  const made = effectsFor(type?.effects ?? [], node.effect, (name) => {
    const effect = effects[name]({ ...host, raise: (event) => raised.push(event) })
    return report ? narrated(ports[name], effect, report) : effect
  })
  const context = contextOf({
    ...{ run: state.run, organization: state.organization, now },
    node: { id: node.id, attempt },
    signal: host.signal,
    effects: made,
  })
  const outcome = await execute(node, scope, context, {
    limits: LIMITS,
    explain: (error) =>
      explainError(error, { log, signal: host.signal, run_id: state.run.id, node: node.id }),
  })
  return { outcome, raised: outcome.status === 'failed' ? [] : raised }
}

/** An attempt that failed outside of the node. */
export const failed = (failure: Failure, input: unknown = null): Performed => ({
  outcome: { status: 'failed', input, ...failure },
  raised: [],
})
