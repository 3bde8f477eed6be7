import type { Scope } from '../expressions/liquid.ts'
import type { RunFacts, RunNode } from './run-state.ts'

/** What the placeholders of a run can read. A node is among `nodes` once it has ended. */
export function scopeOf({ run, organization }: RunFacts, nodes: Iterable<RunNode>): Scope {
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
    env: {},
  }
}

/** What the placeholders of a tested node can read: sample values by root, and the facts that are known. */
export const testScope = (
  samples: Record<string, unknown>,
  facts: { run?: Record<string, unknown>; org: Record<string, unknown> },
): Scope => ({ trigger: {}, inputs: {}, nodes: {}, ...samples, ...facts, env: {} })
