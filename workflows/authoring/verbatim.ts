import type { NodeSpec } from '../language/definition.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Lowered } from './lower.ts'

/**
 * The nodes without the texts that are passed as written, in which `{{` is no placeholder, and with the placeholders
 * that other keys stand for.
 */
export const renderedNodes = (nodes: readonly NodeSpec[]): NodeSpec[] =>
  nodes.map((node) => {
    const type = findNodeType(node.type)
    const implied = Object.entries(type?.reads(node.config) ?? {})
    const { verbatim = [] } = type ?? {}
    if (verbatim.length === 0 && implied.length === 0) return node
    const rendered = Object.entries(node.config).filter(([name]) => !verbatim.includes(name))
    return { ...node, config: Object.fromEntries([...rendered, ...implied]) }
  })

export const withoutVerbatim = (lowered: Lowered): Lowered => ({
  ...lowered,
  definition: { ...lowered.definition, nodes: renderedNodes(lowered.definition.nodes) },
})
