import { render, type Scope } from '../expressions/liquid.ts'
import { references } from '../expressions/references.ts'
import type { NodeState } from './step.ts'
import { capped } from './storable.ts'

/**
 * Renders the outputs of a run. One that reads a node's output is null unless that node completed; one that reads its
 * error is null unless it failed. Throws NodeError.
 */
export function renderOutputs(
  outputs: Record<string, unknown>,
  nodes: ReadonlyMap<string, NodeState>,
  scope: Scope,
  maxBytes: number,
): Record<string, unknown> {
  const rendered = Object.entries(outputs).map(([name, value]) => [
    name,
    isAvailable(value, nodes) ? render(value, scope) : null,
  ])
  return capped(Object.fromEntries(rendered), maxBytes) as Record<string, unknown>
}

function isAvailable(value: unknown, nodes: ReadonlyMap<string, NodeState>): boolean {
  if (typeof value === 'string')
    return references(value).every(({ path: [root, id, member], optional }) => {
      if (root !== 'nodes' || optional || typeof id !== 'string') return true
      const status = nodes.get(id)?.status
      if (member === 'status' || member === 'handle') return status !== undefined
      return status === (member === 'error' ? 'failed' : 'completed')
    })
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every((item) => isAvailable(item, nodes))
}
