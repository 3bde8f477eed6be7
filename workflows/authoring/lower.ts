import type { Definition, Edge, NodeSpec } from '../language/definition.ts'
import { type Problem, pointer } from '../language/problems.ts'
import { Texts } from '../language/texts.ts'
import { flowOf } from './flow.ts'
import type { Spec, SpecNode } from './schema.ts'

/** A definition, with the places of its nodes and edges: JSON Pointers into the author's input. */
export interface Lowered {
  definition: Definition
  texts: Texts
  /** The targets `end` in `next`, which are not edges of the definition. */
  ends: Edge[]
  /** Warnings about implicit ends of branches. */
  warnings: Problem[]
  nodePath(id: string): string
  edgePath(edge: Edge): string
}

/**
 * Turns an authoring spec into a definition: `next` becomes edges, except `end`. From an error handle, `end` becomes
 * `on_error: end`, because without an edge a failure would fail the run.
 */
export function lowerSpec(spec: Spec): Lowered {
  const { places, warnings } = flowOf(spec)
  const written = [...places.keys()]
  const edges = written.filter(({ to }) => to !== 'end')
  const ends = written.filter(({ to }) => to === 'end')
  const caught = nodesWithErrorEdge(edges)
  const ended = nodesWithErrorEdge(ends)
  return {
    definition: {
      ...common(spec),
      nodes: Object.entries(spec.nodes).map(([id, node]) => {
        const settled = ended.has(id) && !caught.has(id) ? ({ on_error: 'end' } as const) : {}
        return nodeSpec(id, { ...settled, ...given(node) })
      }),
      edges,
    },
    texts: new Texts(),
    ends,
    warnings,
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
  const { type, title, config, retry, timeout, rate, pool, on_error, when, join, undo } = node
  return given({
    id,
    type,
    title,
    config,
    retry,
    timeout,
    rate,
    pool,
    on_error,
    when,
    join,
    undo,
  }) as NodeSpec
}

function given<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}
