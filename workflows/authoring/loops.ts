import type { Definition, Edge, NodeSpec } from '../language/definition.ts'
import { references } from '../language/expressions/references.ts'
import { type Problem, write } from '../language/problems.ts'
import { type PlacedText, textsIn } from '../language/texts.ts'
import { findNodeType } from '../nodes/index.ts'
import { LOOP } from '../shared/limits.ts'
import { add } from './lists.ts'
import type { Lowered } from './lower.ts'
import { renderedNodes } from './verbatim.ts'

/** The bodies of a definition's loops. */
export interface Bodies {
  /** The loops whose bodies a node is in, the innermost first. */
  around(id: string): readonly string[]
  /** The edges that leave a body or enter it from outside, with the loop. */
  crossing: ReadonlyMap<Edge, string>
}

type Graph = Pick<Definition, 'nodes' | 'edges'>

export const isLoop = ({ type }: Pick<NodeSpec, 'type'>) => findNodeType(type)?.body !== undefined

/** Whether the body of a loop runs until a condition holds: it reads `previous` instead of `item`. */
export const isRepeat = ({ type }: Pick<NodeSpec, 'type'>) => findNodeType(type)?.repeats === true

/** The body of a loop: the nodes that only its `item` handle leads to. */
export function bodiesOf({ nodes, edges }: Graph): Bodies {
  const loops = nodes.filter(isLoop).slice(0, LOOP.perWorkflow)
  const around = new Map<string, { loop: string; size: number }[]>()
  const crossing = new Map<Edge, string>()
  const out = new Map<string, Edge[]>()
  for (const edge of loops.length > 0 ? edges : []) add(out, edge.from, edge)
  for (const { id, type } of loops) {
    const entry = findNodeType(type)?.body
    const enters = (edge: Edge) => edge.from === id && edge.handle === entry
    const entries = (out.get(id) ?? []).filter(enters)
    const inside = reach(
      out,
      entries.map(({ to }) => to),
    )
    const outside = reach(out, nodes[0] ? [nodes[0].id] : [], enters)
    // `cycle` reports it.
    if (inside.has(id)) continue
    const body = [...inside].filter((node) => !outside.has(node))
    for (const node of body) add(around, node, { loop: id, size: body.length })
    const own = new Set(body)
    for (const edge of [...entries, ...body.flatMap((node) => out.get(node) ?? [])])
      if (!own.has(edge.to) && !crossing.has(edge)) crossing.set(edge, id)
  }
  const sorted = new Map(
    [...around].map(([id, list]) => [id, list.sort((a, b) => a.size - b.size).map(({ loop }) => loop)]),
  )
  return { around: (id) => sorted.get(id) ?? [], crossing }
}

function reach(
  out: ReadonlyMap<string, Edge[]>,
  from: string[],
  without?: (edge: Edge) => boolean,
): Set<string> {
  const found = new Set(from)
  for (const id of found) for (const edge of out.get(id) ?? []) if (!without?.(edge)) found.add(edge.to)
  return found
}

/** Checks that each loop has a body that is entered only through the loop, and that no edge leaves it. */
export function checkBodies({ definition, nodePath, edgePath }: Lowered, bodies: Bodies): Problem[] {
  const problems: Problem[] = []
  const tooMany = definition.nodes.filter(isLoop)[LOOP.perWorkflow]
  if (tooMany)
    return [
      {
        code: 'loop_body',
        message: `there are more than ${LOOP.perWorkflow} loops`,
        path: nodePath(tooMany.id),
        node_id: tooMany.id,
        atKey: true,
        hint: 'move some of them to workflows of their own, and start those instead',
      },
    ]
  for (const { id, type } of definition.nodes) {
    const entry = findNodeType(type)?.body
    if (entry === undefined) continue
    const where = { path: nodePath(id), node_id: id, atKey: true }
    if (!definition.edges.some(({ from, handle }) => from === id && handle === entry))
      problems.push({
        code: 'loop_body',
        message: `${id} has no body: its \`${entry}\` leads nowhere`,
        hint: `lead on from it: \`next: {${entry}: <the first node of the body>, done: <the node after the loop>}\``,
        ...where,
      })
    if (bodies.around(id).length >= LOOP.depth)
      problems.push({
        code: 'loop_body',
        message: `${id} is in ${bodies.around(id).length} loops: at most ${LOOP.depth} can be nested`,
        hint: 'move the inner loops to a workflow of their own, and start that for each item',
        ...where,
      })
  }
  for (const [edge, loop] of bodies.crossing) {
    const { from, to } = edge
    const where = { path: edgePath(edge), node_id: from, atKey: true }
    if (from === loop)
      problems.push({
        code: 'loop_body',
        message: `${to} is in the body of ${loop}, but a node outside of the body leads to it too`,
        hint: `a body is entered only through the loop: leave ${to} to ${loop}`,
        ...where,
      })
    else
      problems.push({
        code: 'loop_body',
        message: `${from} is in the body of ${loop}, and ${to} is outside of it`,
        hint: definition.edges.some((one) => one.from === loop && one.to === to)
          ? write('end')
          : `a body ends where no node follows: write \`next: end\` in ${from}, and \`done: ${to}\` in the \`next\` of ${loop}`,
        ...where,
      })
  }
  return problems
}

/** The last nodes of bodies whose outputs are the results of items. */
export function resultNodes({ nodes, edges }: Graph, bodies: Bodies): string[] {
  const followed = new Set(edges.map(({ from }) => from))
  const own = new Set(nodes.filter(({ config }) => Object.hasOwn(config, 'output')).map(({ id }) => id))
  return nodes
    .filter(({ id }) => {
      const [loop] = bodies.around(id)
      return loop !== undefined && !own.has(loop) && !followed.has(id)
    })
    .map(({ id }) => id)
}

/** The texts that a run renders. */
export const textsOf = ({ nodes, outputs }: Pick<Definition, 'nodes' | 'outputs'>): PlacedText[] =>
  textsIn([...renderedNodes([...nodes]).flatMap(({ config, when }) => [config, when]), outputs])

/** The field of a loop's output that the first engine does not have. */
const ALONE = 'results'

/** The loops whose results some placeholder reads, and whether one of them reads `results`. */
export function readResults(definition: Pick<Definition, 'nodes' | 'outputs'>): {
  of: (id: string) => boolean
  alone: boolean
} {
  // A path ends before its first computed segment.
  const paths = textsOf(definition).flatMap(({ text }) =>
    references(text).map(({ path }) => path.map(String)),
  )
  const read = paths.filter(([root]) => root === 'nodes')
  const loops = new Set(definition.nodes.filter(isLoop).map(({ id }) => id))
  return {
    of: (id) =>
      read.some(
        ([, node = id, member = 'output', field = 'items']) =>
          node === id && member === 'output' && (field === 'items' || field === ALONE),
      ),
    alone: read.some(([, node, , field]) => field === ALONE && loops.has(String(node))),
  }
}
