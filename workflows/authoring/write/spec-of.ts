import type { Definition, Edge, NodeSpec, Trigger } from '../../language/definition.ts'
import { defaultHandle } from '../flow.ts'

/** A spec as plain values, in the order in which it is written. */
export type SpecValue = Record<string, unknown> & { nodes: Record<string, Record<string, unknown>> }

/** The members of a spec in the order of the guide. */
export const SPEC_ORDER = ['name', 'description', 'trigger', 'inputs', 'settings', 'nodes', 'outputs']

/** The authoring spec of a definition: defaults are left out, and edges become `next`. */
export function specOf(definition: Definition): SpecValue {
  const { name, description, trigger, inputs, settings, nodes, outputs } = definition
  const next = nextOf(definition)
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(trigger.type === 'manual' ? {} : { trigger: triggerOf(trigger) }),
    ...filled({ inputs }),
    ...filled({ settings }),
    nodes: Object.fromEntries(
      nodes.map(({ id, ...node }) => {
        const target = next.get(id)
        return [id, { ...nodeMembers(node), ...(target === undefined ? {} : { next: target }) }]
      }),
    ),
    ...filled({ outputs }),
  }
}

/** The members of a node that both forms have, without an empty config. */
function nodeMembers({ config, type, title, ...others }: Omit<NodeSpec, 'id'>) {
  return { type, ...(title === undefined ? {} : { title }), ...filled({ config }), ...others }
}

const triggerOf = (trigger: Trigger): unknown => (trigger.type === 'webhook' ? trigger.type : trigger)

const filled = (member: Record<string, object>) =>
  Object.fromEntries(Object.entries(member).filter(([, value]) => Object.keys(value).length > 0))

/**
 * The explicit `next` of each node. Absent where the flow from one node to the following one says the same: if its only
 * edge leads there, and no other edge does.
 */
function nextOf({ nodes, edges }: Definition): Map<string, unknown> {
  const incoming = new Map<string, number>()
  for (const { to } of edges) incoming.set(to, (incoming.get(to) ?? 0) + 1)
  const leaving = edgesByNode(edges)
  const found = new Map<string, unknown>()
  nodes.forEach((node, index) => {
    const own = leaving.get(node.id)
    const [only, ...others] = own ?? []
    const handle = defaultHandle(node.type, node.config)
    const following = nodes[index + 1]?.id
    const flows = only
      ? others.length === 0 && only.handle === handle && only.to === following && incoming.get(only.to) === 1
      : handle === '' || following === undefined
    if (!flows) found.set(node.id, explicitNext(node, own))
  })
  return found
}

/** The `next` that says these edges of a node, without regard to the nodes around it. */
export function explicitNext(
  { type, config }: Pick<NodeSpec, 'type' | 'config'>,
  edges: Edge[] = [],
): unknown {
  if (edges.length === 0) return 'end'
  const targets = new Map<string, string[]>()
  for (const { handle, to } of edges) {
    const others = targets.get(handle) ?? []
    if (!others.includes(to)) targets.set(handle, [...others, to])
  }
  const written = Object.fromEntries([...targets].map(([name, to]) => [name, to.length === 1 ? to[0] : to]))
  const byDefault = defaultHandle(type, config)
  return targets.size === 1 && targets.has(byDefault) ? written[byDefault] : written
}

export function edgesByNode(edges: readonly Edge[]): Map<string, Edge[]> {
  const found = new Map<string, Edge[]>()
  for (const edge of edges) {
    const own = found.get(edge.from)
    if (own) own.push(edge)
    else found.set(edge.from, [edge])
  }
  return found
}
