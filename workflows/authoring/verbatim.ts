import type { NodeSpec } from '../language/definition.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'

/** The nodes without the settings that are passed as written: `{{` in them is no placeholder. */
export const renderedNodes = (nodes: readonly NodeSpec[]): NodeSpec[] =>
  nodes.map((node) => {
    const verbatim = findNodeType(node.type)?.verbatim ?? []
    if (verbatim.length === 0) return node
    const rendered = Object.entries(node.config).filter(([name]) => !verbatim.includes(name))
    return { ...node, config: Object.fromEntries(rendered) }
  })

export const withoutVerbatim = (lowered: Lowered): Lowered => ({
  ...lowered,
  definition: { ...lowered.definition, nodes: renderedNodes(lowered.definition.nodes) },
})
