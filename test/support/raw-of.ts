import { lowerSpec } from '../../workflows/authoring/lower.ts'
import { parseYaml } from '../../workflows/authoring/parse.ts'
import { readBy } from '../../workflows/authoring/salvage.ts'
import { specSchema } from '../../workflows/authoring/schema.ts'

type Mapping = Record<string, unknown>
const isMapping = (value: unknown): value is Mapping =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The raw definition of a YAML spec, mistakes included: its nodes as a list, and what `next` says as edges. Undefined if
 * the text has no nodes by id.
 */
export function rawOf(text: string): Mapping | undefined {
  const { value } = parseYaml(text)
  if (!isMapping(value) || !isMapping(value.nodes)) return undefined
  const { parts: salvaged } = readBy(specSchema, value)
  const lowered = salvaged && lowerSpec(salvaged).definition
  const ended = new Set(lowered?.nodes.filter(({ on_error }) => on_error === 'end').map(({ id }) => id))
  const nodes = Object.entries(value.nodes).map(([id, node]) => {
    if (!isMapping(node)) return { id, node }
    const { next: _, ...rest } = node
    return { id, ...(ended.has(id) ? { on_error: 'end' } : {}), ...rest }
  })
  return { ...value, nodes, ...(lowered && lowered.edges.length > 0 ? { edges: lowered.edges } : {}) }
}
