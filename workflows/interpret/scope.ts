import type { Scope } from '../language/expressions/liquid.ts'
import { findNodeType } from '../nodes/index.ts'
import { isObject } from '../shared/is-object.ts'
import { chainOf, type Frame, isRepeat, type OpenLoop, typeOfLoop } from './frames.ts'
import type { RunFacts, RunIteration } from './run-state.ts'

/**
 * The values that placeholders in a frame of a run can read. `nodes` holds the ended nodes of the frame and of the
 * frames around it. In the body of a loop, the output of the loop is the current item, or the result of the turn before.
 */
export function scopeOf({ run, organization, env }: RunFacts, frame: Frame): Scope {
  const nodes: Record<string, unknown> = {}
  const items: Scope = {}
  for (const { rows, iteration, loop } of chainOf(frame).reverse()) {
    if (iteration && loop) {
      const current = currentOf(loop, iteration)
      Object.assign(items, current)
      const output = isRepeat(loop) ? current : { ...current, count: loop.state.count }
      nodes[loop.id] = { output, status: 'running', handle: typeOfLoop(loop)?.body ?? null, error: null }
    }
    for (const { node_id, node_type, ended_at, output, status, handle, error } of rows.values())
      if (ended_at !== null)
        nodes[node_id] = { output: isLoop(node_type) ? withResults(output) : output, status, handle, error }
  }
  return {
    trigger: run.trigger,
    inputs: run.inputs,
    nodes,
    ...items,
    run: {
      id: run.id,
      workflow_id: run.workflow_id,
      workflow_name: run.workflow_name,
      started_at: run.started_at ?? run.created_at,
      ...(run.ending && { status: run.ending.status, error: run.ending.error }),
    },
    org: organization,
    env,
  }
}

const isLoop = (type: string) => findNodeType(type)?.body !== undefined

/**
 * The output of a loop, which placeholders also read as `results`: the outputs of its items alone. They are neither
 * stored nor copied a second time with the whole output.
 */
export function withResults(output: unknown): unknown {
  if (!isObject(output) || !Array.isArray(output.items)) return output
  const items = output.items as { status: string; output: unknown }[]
  const results = () =>
    items.filter(({ status }) => status === 'completed').map((item) => item.output ?? null)
  return Object.defineProperty({ ...output }, 'results', { get: results, enumerable: false })
}

/** The row of a turn has the result of the turn before as its item. */
const currentOf = (loop: OpenLoop, { item, index }: RunIteration): Scope =>
  isRepeat(loop) ? { previous: item, index } : { item, index }

/** The values that placeholders of a tested node can read: sample values by root, and the known facts. */
export const testScope = (
  samples: Record<string, unknown>,
  facts: { run?: Record<string, unknown>; org: Record<string, unknown>; env: Record<string, unknown> },
): Scope => ({ trigger: {}, inputs: {}, nodes: {}, ...samples, ...facts })
