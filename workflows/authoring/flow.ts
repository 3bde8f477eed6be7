import type { Edge } from '../language/definition.ts'
import { type Problem, pointer } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { add } from './lists.ts'
import type { Spec, SpecNode } from './schema.ts'

/** The edges of an authoring spec. */
export interface Flow {
  /** Every edge, also to `end`, with the JSON Pointer to its place in the spec. */
  places: ReadonlyMap<Edge, string>
  /** The warnings `implicit_end`. */
  warnings: Problem[]
}

/**
 * Turns `next` into edges. Without `next`, a node flows to the next node in the spec, unless some `next` names that
 * node: then the branch ends. So branches that are written one after the other stay separate.
 */
export function flowOf({ nodes }: Pick<Spec, 'nodes'>): Flow {
  const ids = Object.keys(nodes)
  const forks = forksOf(nodes)
  const places = new Map<Edge, string>()
  const ended: { id: string; following: string }[] = []
  ids.forEach((id, index) => {
    const node = nodes[id]!
    const following = ids[index + 1]
    if (node.next !== undefined) {
      for (const [edge, path] of writtenEdges(id, node)) places.set(edge, path)
      return
    }
    const handle = defaultHandle(node.type, node.config)
    if (following === undefined || handle === '') return
    if (forks.has(following)) ended.push({ id, following })
    else places.set({ from: id, handle, to: following }, pointer('nodes', id))
  })
  const next = successors(places.keys())
  // A loop leads to its body and to what follows it, not to parallel branches.
  const isLoop = (id: string) => findNodeType(nodes[id]?.type ?? '')?.body !== undefined
  const warnings = ended.flatMap(({ id, following }) => {
    const beside = forks.get(following)!.filter(({ from }) => !isLoop(from))
    const other = continuation(beside, following, next)
    if (!other || other.to === id) return []
    // The other branch would end too if only this node had a `next`: its target would then be named by a `next`.
    const writers = nodes[other.from]?.next === undefined ? [id, other.from] : [id]
    return [implicitEnd(id, following, other.to, writers)]
  })
  return { places, warnings }
}

/** The handle of an edge without one: the type's first; empty if it has none, `success` if the type is unknown. */
export function defaultHandle(type: string, config: Record<string, unknown>): string {
  const found = findNodeType(type)
  return found ? (found.handles(config)[0]?.name ?? '') : 'success'
}

const implicitEnd = (id: string, following: string, to: string, writers: string[]): Problem => ({
  code: 'implicit_end',
  message: `${id} ends its branch: it has no \`next\`, and ${following}, the node after it, is the target of another \`next\``,
  path: pointer('nodes', id),
  node_id: id,
  atKey: true,
  hint: `to continue with ${to}, write \`next: ${to}\` in ${writers.join(' and in ')}; to end the branch, write \`next: end\` in ${id}`,
})

/** The distinct nodes that follow each node, except by its error handle. */
type Successors = ReadonlyMap<string, ReadonlySet<string>>

function successors(edges: Iterable<Edge>): Successors {
  const found = new Map<string, Set<string>>()
  for (const { from, handle, to } of edges)
    if (handle !== 'error' && to !== 'end') found.set(from, (found.get(from) ?? new Set()).add(to))
  return found
}

/** A node with a `next`, and the last of its targets in the order of the spec. */
interface Fork {
  from: string
  last: string
}

/** The forks that name each node. */
function forksOf(nodes: Spec['nodes']): ReadonlyMap<string, Fork[]> {
  const index = new Map(Object.keys(nodes).map((id, at) => [id, at]))
  const found = new Map<string, Fork[]>()
  for (const [from, { next }] of Object.entries(nodes)) {
    const targets = [...new Set(targetsOf(next))].filter((id) => index.has(id))
    targets.sort((a, b) => index.get(a)! - index.get(b)!)
    for (const to of targets) add(found, to, { from, last: targets.at(-1)! })
  }
  return found
}

function targetsOf(next: SpecNode['next']): string[] {
  if (next === undefined) return []
  if (typeof next === 'string') return [next]
  return Array.isArray(next) ? next : Object.values(next).flat()
}

/**
 * Where a branch most likely continues that ends before `following`: in `following`, if another node leads only there,
 * or else in the only successor of the last parallel branch.
 */
function continuation(
  forks: Fork[],
  following: string,
  next: Successors,
): Pick<Edge, 'from' | 'to'> | undefined {
  for (const { from } of forks) {
    const targets = next.get(from)
    if (targets?.size === 1 && targets.has(following)) return { from, to: following }
  }
  for (const { last } of forks) {
    const targets = next.get(last)
    if (targets?.size === 1) return { from: last, to: [...targets][0]! }
  }
  return undefined
}

function writtenEdges(id: string, { type, config, next }: SpecNode): [Edge, string][] {
  const path = `${pointer('nodes', id)}/next`
  if (next === undefined) return []
  // A plain `end` is allowed after a node without handles.
  if (typeof next === 'string' || Array.isArray(next))
    return leading(id, defaultHandle(type, config), next, path).filter(([{ to }]) => to !== 'end')
  return Object.entries(next).flatMap(([handle, to]) => leading(id, handle, to, `${path}${pointer(handle)}`))
}

function leading(from: string, handle: string, to: string | string[], path: string): [Edge, string][] {
  const all = Array.isArray(to)
    ? to.map((id, index) => [id, `${path}/${index}`] as const)
    : [[to, path] as const]
  return all.map(([id, place]) => [{ from, handle, to: id }, place])
}
