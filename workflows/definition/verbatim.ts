import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'

/** The same without the settings that are passed as written: `{{` in them is no placeholder. */
export function withoutVerbatim(lowered: Lowered): Lowered {
  const { definition } = lowered
  const nodes = definition.nodes.map((node) => {
    const verbatim = findNodeType(node.type)?.verbatim ?? []
    if (verbatim.length === 0) return node
    const rendered = Object.entries(node.config).filter(([name]) => !verbatim.includes(name))
    return { ...node, config: Object.fromEntries(rendered) }
  })
  return { ...lowered, definition: { ...definition, nodes } }
}
