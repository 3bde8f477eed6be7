import type { Scope } from '../expressions/liquid.ts'
import type { RunFacts, RunNode } from './run-state.ts'

/** The values that placeholders of a run can read. `nodes` holds the nodes that have ended. */
export function scopeOf({ run, organization, env }: RunFacts, nodes: Iterable<RunNode>): Scope {
  const ended = [...nodes].filter((node) => node.ended_at !== null)
  return {
    trigger: run.trigger,
    inputs: run.inputs,
    nodes: Object.fromEntries(
      ended.map(({ node_id, output, status, handle, error }) => [node_id, { output, status, handle, error }]),
    ),
    run: {
      id: run.id,
      workflow_id: run.workflow_id,
      workflow_name: run.workflow_name,
      started_at: run.started_at ?? run.created_at,
    },
    org: organization,
    env,
  }
}

/** The values that placeholders of a tested node can read: sample values by root, and the known facts. */
export const testScope = (
  samples: Record<string, unknown>,
  facts: { run?: Record<string, unknown>; org: Record<string, unknown>; env: Record<string, unknown> },
): Scope => ({ trigger: {}, inputs: {}, nodes: {}, ...samples, ...facts })
