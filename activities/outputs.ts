import { render, type Scope } from '../workflows/expressions/liquid.ts'
import { references } from '../workflows/expressions/references.ts'
import type { NodeState } from '../workflows/interpret/step.ts'
import { capped } from './storable.ts'

/**
 * What a run answers with: each output rendered; null where a node it reads has none of what it reads: an output or
 * an error that did not come about. Throws NodeError.
 */
export function renderOutputs(
  outputs: Record<string, unknown>,
  nodes: ReadonlyMap<string, NodeState>,
  scope: Scope,
): Record<string, unknown> {
  const rendered = Object.entries(outputs).map(([name, value]) => [
    name,
    cameAbout(value, nodes) ? render(value, scope) : null,
  ])
  return capped(Object.fromEntries(rendered)) as Record<string, unknown>
}

function cameAbout(value: unknown, nodes: ReadonlyMap<string, NodeState>): boolean {
  if (typeof value === 'string')
    return references(value).every(({ path: [root, id, member], optional }) => {
      if (root !== 'nodes' || optional || typeof id !== 'string') return true
      const status = nodes.get(id)?.status
      if (member === 'status' || member === 'handle') return status !== undefined
      return status === (member === 'error' ? 'failed' : 'completed')
    })
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every((item) => cameAbout(item, nodes))
}
