import { findNodeType } from '../nodes/index.ts'
import { pointer } from './errors.ts'
import type { Spec, SpecNode } from './schema.ts'
import type { Definition, Edge, NodeSpec } from './types.ts'

/** A definition, with the places of its nodes and edges: JSON Pointers into the author's input. */
export interface Lowered {
  definition: Definition
  /** The targets `end` in `next`, which are not edges of the definition. */
  ends: Edge[]
  nodePath(id: string): string
  edgePath(edge: Edge): string
}

/**
 * Turns an authoring spec into a definition: `next` becomes edges, except `end`. From an error handle, `end` becomes
 * `on_error: end`, because without an edge a failure would fail the run.
 */
export function lowerSpec(spec: Spec): Lowered {
  const ids = Object.keys(spec.nodes)
  const places = new Map<Edge, string>()
  ids.forEach((id, index) => {
    for (const [edge, path] of edgesOf(id, spec.nodes[id]!, ids[index + 1])) places.set(edge, path)
  })
  const written = [...places.keys()]
  const edges = written.filter(({ to }) => to !== 'end')
  const ends = written.filter(({ to }) => to === 'end')
  const caught = nodesWithErrorEdge(edges)
  const ended = nodesWithErrorEdge(ends)
  return {
    definition: {
      ...common(spec),
      nodes: ids.map((id) => {
        const node = spec.nodes[id]!
        const settled = ended.has(id) && !caught.has(id) ? ({ on_error: 'end' } as const) : {}
        return nodeSpec(id, { ...settled, ...given(node) })
      }),
      edges,
    },
    ends,
    nodePath: (id) => pointer('nodes', id),
    edgePath: (edge) => places.get(edge) ?? pointer('nodes', edge.from),
  }
}

/** The ids of the nodes whose error handle has one of these edges. */
export const nodesWithErrorEdge = (edges: Edge[]): ReadonlySet<string> =>
  new Set(edges.filter(({ handle }) => handle === 'error').map(({ from }) => from))

/** The members that both forms share. */
export function common(
  spec: Pick<Spec, 'name' | 'description' | 'trigger' | 'inputs' | 'outputs' | 'settings'>,
) {
  const { name, description, trigger, inputs, outputs, settings } = spec
  return given({ name, description, trigger, inputs, outputs, settings }) as Omit<
    Definition,
    'nodes' | 'edges'
  >
}

export function nodeSpec(id: string, node: Omit<SpecNode, 'next'>): NodeSpec {
  const { type, title, config, retry, timeout, on_error, when, join } = node
  return given({ id, type, title, config, retry, timeout, on_error, when, join }) as NodeSpec
}

/** The handle of an edge that names none: the type's first. Empty if it has none, `success` if the type is unknown. */
export function defaultHandle(type: string, config: Record<string, unknown>): string {
  const found = findNodeType(type)
  return found ? (found.handles(config)[0]?.name ?? '') : 'success'
}

function edgesOf(id: string, node: SpecNode, following: string | undefined): [Edge, string][] {
  const first = defaultHandle(node.type, node.config)
  const path = pointer('nodes', id)
  const { next } = node
  if (next === undefined)
    return following === undefined || first === '' ? [] : [[{ from: id, handle: first, to: following }, path]]
  // A plain `end` is allowed after a node without handles.
  if (typeof next === 'string' || Array.isArray(next))
    return leading(id, first, next, `${path}/next`).filter(([{ to }]) => to !== 'end')
  return Object.entries(next).flatMap(([handle, to]) =>
    leading(id, handle, to, `${path}/next${pointer(handle)}`),
  )
}

function leading(from: string, handle: string, to: string | string[], path: string): [Edge, string][] {
  const all = Array.isArray(to)
    ? to.map((id, index) => [id, `${path}/${index}`] as const)
    : [[to, path] as const]
  return all.map(([id, place]) => [{ from, handle, to: id }, place])
}

function given<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
