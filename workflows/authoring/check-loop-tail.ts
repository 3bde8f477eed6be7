import type { Edge, NodeSpec } from '../language/definition.ts'
import { add, type Problem } from '../language/problems.ts'
import { findNodeType } from '../nodes/index.ts'
import { type Bodies, isLoop, isRepeat } from './loops.ts'
import type { Lowered } from './lower.ts'

/** What differs from item to item, besides the nodes of the body. */
const CHANGING = ['item', 'index', 'previous']

/**
 * Warns about loops without `next` that take all nodes after them as their body, where the last ones have nothing to do
 * with an item: their authors meant them to follow the loop. Only for authoring specs, where edges can be implicit.
 */
export function checkLoopTails(lowered: Lowered, bodies: Bodies): Problem[] {
  const { nodes, edges } = lowered.definition
  const isImplicit = (edge: Edge) => lowered.edgePath(edge) === lowered.nodePath(edge.from)
  return nodes.flatMap((loop): Problem[] => {
    const type = findNodeType(loop.type)
    if (!isLoop(loop) || !type) return []
    const own = edges.filter(({ from, handle }) => from === loop.id && handle !== 'error')
    const [entry] = own
    if (!entry || own.length > 1 || !isImplicit(entry)) return []
    const body = nodes.filter(({ id }) => bodies.around(id).includes(loop.id))
    const perItem = dependents(lowered, loop, body)
    const tail = chainFrom(entry.to, edges).toReversed()
    const last = tail.findIndex((id) => perItem.has(id) || !isPlain(id, lowered, isImplicit))
    // The whole body may have nothing to do with the items: a pause, a counter.
    if (last <= 0) return []
    const after = tail.slice(0, last).toReversed()
    // The rest of the body must be what leads there, and a pause between items is meant.
    const acts = after.some((id) => !isPause(nodes.find((node) => node.id === id)!))
    if (!acts) return []
    const names = body.map(({ id }) => id)
    const done = type.handles(loop.config).find(({ name }) => name !== type.body && name !== 'error')!.name
    return [
      {
        code: 'loop_takes_the_rest',
        message: `${loop.id} has no \`next\`: its body is all nodes after it, ${names.slice(0, 10).join(', ')}. ${after.join(', ')} would run for each ${type.repeats ? 'turn' : 'item'}, but read${after.length === 1 ? 's' : ''} nothing of it`,
        path: `${lowered.nodePath(loop.id)}/next`,
        node_id: loop.id,
        atKey: true,
        hint: add(`next: {${type.body}: ${entry.to}, ${done}: ${after[0]}}`),
      },
    ]
  })
}

/** The nodes of a body that read the item, or the result of another node of the body. */
function dependents({ texts }: Lowered, loop: NodeSpec, body: NodeSpec[]): ReadonlySet<string> {
  const ids = new Set(body.map(({ id }) => id))
  const found = new Set<string>()
  for (const node of body) {
    const written = [...texts.of(node.config).map(({ text }) => text), node.when ?? '']
    const reads = written.some((text) =>
      texts.readable(text).some(({ path: [root, name] }) => {
        if (root !== 'nodes') return CHANGING.includes(String(root))
        return ids.has(String(name)) || (name === loop.id && isRepeat(loop))
      }),
    )
    if (reads) found.add(node.id)
  }
  return found
}

/** The nodes that follow each other from a node on, as long as one leads to one other only. */
function chainFrom(start: string, edges: Edge[]): string[] {
  const chain = [start]
  for (;;) {
    const next = edges.filter(({ from }) => from === chain.at(-1))
    if (next.length !== 1 || chain.includes(next[0]!.to)) return next.length > 1 ? [] : chain
    chain.push(next[0]!.to)
  }
}

/** Whether a node follows the one before it without `next`, and whatever that one decides, and says nothing itself. */
function isPlain(id: string, { definition, ends }: Lowered, isImplicit: (edge: Edge) => boolean): boolean {
  const { nodes, edges } = definition
  const into = edges.filter(({ to }) => to === id)
  const [edge] = into
  if (into.length !== 1 || !edge || !isImplicit(edge)) return false
  const before = nodes.find((node) => node.id === edge.from)!
  const decides = (findNodeType(before.type)?.handles(before.config) ?? []).filter(
    ({ name }) => name !== 'error',
  )
  return (
    decides.length === 1 &&
    !ends.some(({ from }) => from === id) &&
    edges.every((other) => other.from !== id || isImplicit(other))
  )
}

const isPause = ({ type }: NodeSpec) => findNodeType(type)?.category === 'time'
