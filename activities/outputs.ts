import { render, type Scope } from '../workflows/expressions/liquid.ts'
import { references } from '../workflows/expressions/references.ts'
import type { NodeState } from '../workflows/interpret/step.ts'
import { capped } from './storable.ts'

/** What a run answers with: each output rendered; null where a node it reads was not reached. Throws NodeError. */
export function renderOutputs(
  outputs: Record<string, unknown>,
  nodes: ReadonlyMap<string, NodeState>,
  scope: Scope,
): Record<string, unknown> {
  const rendered = Object.entries(outputs).map(([name, value]) => [
    name,
    wasReached(value, nodes) ? render(value, scope) : null,
  ])
  return capped(Object.fromEntries(rendered)) as Record<string, unknown>
}

function wasReached(value: unknown, nodes: ReadonlyMap<string, NodeState>): boolean {
  if (typeof value === 'string')
    return references(value).every(({ path: [root, id], optional }) => {
      if (root !== 'nodes' || optional || typeof id !== 'string') return true
      return nodes.get(id)?.status === 'completed'
    })
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every((item) => wasReached(item, nodes))
}
