import { render, type Scope } from '../language/expressions/liquid.ts'
import { references } from '../language/expressions/references.ts'
import type { NodeStatus } from '../shared/statuses.ts'
import { capped } from './storable.ts'

/**
 * Renders the outputs of a run. An output that reads the output of a node is null unless the node completed; one that
 * reads its error is null unless it failed. Throws NodeError.
 */
export function renderOutputs(
  outputs: Record<string, unknown>,
  statusOf: StatusOf,
  scope: Scope,
  maxBytes: number,
): Record<string, unknown> {
  const rendered = Object.entries(outputs).map(([name, value]) => [
    name,
    isAvailable(value, statusOf) ? render(value, scope) : null,
  ])
  return capped(Object.fromEntries(rendered), maxBytes) as Record<string, unknown>
}

/** The status of a node by its id; undefined if it was not reached. */
type StatusOf = (id: string) => NodeStatus | undefined

function isAvailable(value: unknown, statusOf: StatusOf): boolean {
  if (typeof value === 'string')
    return references(value).every(({ path: [root, id, member], optional }) => {
      if (root !== 'nodes' || optional || typeof id !== 'string') return true
      const status = statusOf(id)
      if (member === 'status' || member === 'handle') return status !== undefined
      return status === (member === 'error' ? 'failed' : 'completed')
    })
  if (typeof value !== 'object' || value === null) return true
  return Object.values(value).every((item) => isAvailable(item, statusOf))
}
