import { render, type Scope } from '../language/expressions/liquid.ts'
import { references } from '../language/expressions/references.ts'
import { textsIn } from '../language/texts.ts'
import { capped } from './storable.ts'

/** Placeholders read a node that had not started when the run, the item or the turn ended like a skipped node. */
const NOT_REACHED = { output: null, status: 'skipped', handle: null, error: null }

/**
 * Renders a text that is evaluated when a run, an item or a turn has ended: the `outputs` of a workflow, `output` and
 * `until` of a loop. Placeholders have the values that they have in the config of a node. Throws NodeError.
 */
export function renderAtEnd(value: unknown, scope: Scope, maxBytes: number): unknown {
  const nodes = scope.nodes as Record<string, unknown>
  const read = textsIn(value).flatMap(({ text }) => references(text))
  const missing = read.flatMap(({ path: [root, id] }) =>
    root === 'nodes' && typeof id === 'string' && !Object.hasOwn(nodes, id) ? [[id, NOT_REACHED]] : [],
  )
  const known = missing.length > 0 ? { ...scope, nodes: { ...Object.fromEntries(missing), ...nodes } } : scope
  return capped(render(value, known), maxBytes)
}
