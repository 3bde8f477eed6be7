/** What is drawn: nodes in their order, and the edges between them. */
export interface Graph {
  nodes: readonly string[]
  edges: readonly { from: string; to: string; label?: string | undefined }[]
}

export interface Layout {
  width: number
  height: number
  /** The upper left corners of the nodes. */
  boxes: Map<string, { x: number; y: number }>
  /** From the lower edge of a node to the upper edge of another one; `isBack` goes upwards, on the right. */
  lines: {
    from: string
    to: string
    points: [number, number][]
    label: string | undefined
    isBack: boolean
  }[]
}

export const BOX = { width: 168, height: 44 }
const GAP = { x: 28, y: 40 }
/** The room that a line takes in a layer that it only passes. */
const LANE = 20
const SWEEPS = 4

type Edge = Graph['edges'][number]

/**
 * Places a graph in layers from top to bottom: a node is below all that lead to it, a line that passes a layer has a lane
 * of its own there, and what belongs together stands together (the barycentre of its neighbours).
 */
export function layoutOf({ nodes, edges }: Graph): Layout {
  const known = new Set(nodes)
  const all = edges.filter(({ from, to }) => known.has(from) && known.has(to))
  const back = backEdges(nodes, all)
  const forward = all.filter((edge) => !back.has(edge))
  const layer = layersOf(nodes, forward)
  const chains = forward.map((edge) => ({ edge, chain: chainOf(edge, layer) }))
  const rows = orderedRows(
    nodes,
    chains.map(({ chain }) => chain),
    layer,
  )
  const places = placed(
    rows,
    chains.map(({ chain }) => chain),
  )
  const widest = Math.max(...[...places.values()].map(({ x, isLane }) => x + widthOf(isLane)), BOX.width)
  const lines = [
    ...chains.map(({ edge, chain }) => ({ ...ends(edge), points: pointsOf(chain, places), isBack: false })),
    ...[...back].map((edge) => ({ ...ends(edge), points: aside(edge, places), isBack: true })),
  ]
  return {
    width: widest + (back.size > 0 ? GAP.x * 2 : 0),
    height: rows.length * (BOX.height + GAP.y) - GAP.y,
    boxes: new Map(nodes.map((id) => [id, { x: places.get(id)!.x, y: places.get(id)!.y }])),
    lines,
  }
}

const ends = ({ from, to, label }: Edge) => ({ from, to, label })
const widthOf = (isLane: boolean) => (isLane ? LANE : BOX.width)

/** The edges that lead back to a node which is still being followed: without them the graph has no circle. */
function backEdges(nodes: readonly string[], edges: readonly Edge[]): Set<Edge> {
  const next = groupBy(edges, ({ from }) => from)
  const back = new Set<Edge>()
  const done = new Set<string>()
  const open = new Set<string>()
  for (const root of nodes) {
    const path: { id: string; at: number }[] = done.has(root) ? [] : [{ id: root, at: 0 }]
    open.add(root)
    while (path.length > 0) {
      const top = path.at(-1)!
      const edge = next.get(top.id)?.[top.at++]
      if (!edge) {
        done.add(top.id)
        open.delete(top.id)
        path.pop()
      } else if (open.has(edge.to)) back.add(edge)
      else if (!done.has(edge.to)) {
        open.add(edge.to)
        path.push({ id: edge.to, at: 0 })
      }
    }
    open.delete(root)
  }
  return back
}

/** The length of the longest way to each node. */
function layersOf(nodes: readonly string[], edges: readonly Edge[]): Map<string, number> {
  const next = groupBy(edges, ({ from }) => from)
  const waiting = new Map(nodes.map((id) => [id, 0]))
  for (const { to } of edges) waiting.set(to, waiting.get(to)! + 1)
  const layer = new Map(nodes.map((id) => [id, 0]))
  const ready = nodes.filter((id) => waiting.get(id) === 0)
  for (const id of ready)
    for (const { to } of next.get(id) ?? []) {
      layer.set(to, Math.max(layer.get(to)!, layer.get(id)! + 1))
      waiting.set(to, waiting.get(to)! - 1)
      if (waiting.get(to) === 0) ready.push(to)
    }
  return layer
}

/** A place in a layer: of a node, or of a line that passes. */
interface Place {
  id: string
  isLane: boolean
}

const chainOf = ({ from, to, label = '' }: Edge, layer: Map<string, number>): Place[] => {
  const [first, last] = [layer.get(from)!, layer.get(to)!]
  const lanes = Array.from({ length: last - first - 1 }, (_, i) => ({
    id: `${from} ${label} ${to} ${first + i + 1}`,
    isLane: true,
  }))
  return [{ id: from, isLane: false }, ...lanes, { id: to, isLane: false }]
}

function orderedRows(nodes: readonly string[], chains: Place[][], layer: Map<string, number>): Place[][] {
  const rows: Place[][] = Array.from({ length: Math.max(0, ...layer.values()) + 1 }, () => [])
  for (const id of nodes) rows[layer.get(id)!]!.push({ id, isLane: false })
  for (const chain of chains)
    for (const [i, place] of chain.entries())
      if (place.isLane) rows[layer.get(chain[0]!.id)! + i]!.push(place)
  const pairs = chains.flatMap((chain) => chain.slice(1).map(({ id }, i) => [chain[i]!.id, id] as const))
  const above = groupBy(pairs, ([, id]) => id)
  const below = groupBy(pairs, ([id]) => id)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0
    const order = isDown ? rows.keys() : [...rows.keys()].reverse()
    for (const i of order) {
      const near = rows[isDown ? i - 1 : i + 1]
      if (!near) continue
      const at = new Map(near.map(({ id }, x) => [id, x / near.length]))
      const middle = new Map(
        rows[i]!.map(({ id }, x) => {
          const others = isDown
            ? (above.get(id) ?? []).map(([from]) => at.get(from)!)
            : (below.get(id) ?? []).map(([, to]) => at.get(to)!)
          const sum = others.reduce((total, one) => total + one, 0)
          return [id, others.length > 0 ? sum / others.length : x / rows[i]!.length]
        }),
      )
      rows[i]!.sort((a, b) => middle.get(a.id)! - middle.get(b.id)!)
    }
  }
  return rows
}

type Places = Map<string, { x: number; y: number; isLane: boolean }>

/** Each row in its order, as near to the middle of what leads to its places as their widths allow. */
function placed(rows: Place[][], chains: Place[][]): Places {
  const pairs = chains.flatMap((chain) => chain.slice(1).map(({ id }, i) => [chain[i]!.id, id] as const))
  const above = groupBy(pairs, ([, id]) => id)
  const places: Places = new Map()
  const middleOf = (id: string) => places.get(id)!.x + widthOf(places.get(id)!.isLane) / 2
  for (const [i, row] of rows.entries()) {
    let [next, moved] = [Number.NEGATIVE_INFINITY, 0]
    for (const { id, isLane } of row) {
      const from = (above.get(id) ?? []).map(([one]) => middleOf(one))
      const middle = from.length > 0 ? from.reduce((sum, one) => sum + one, 0) / from.length : 0
      const wanted = middle - widthOf(isLane) / 2
      const x = Math.max(wanted, next)
      places.set(id, { x, y: i * (BOX.height + GAP.y), isLane })
      next = x + widthOf(isLane) + GAP.x
      moved += x - wanted
    }
    // What stands too far to the right by turns is too far to the left as much.
    for (const { id } of row) places.get(id)!.x -= moved / row.length
  }
  const left = Math.min(...[...places.values()].map(({ x }) => x))
  for (const place of places.values()) place.x -= left
  return places
}

/** Leaves a node below, enters one above, and passes a layer straight. */
const pointsOf = (chain: Place[], places: Places): [number, number][] =>
  chain.flatMap(({ id }, i): [number, number][] => {
    const { x, y, isLane } = places.get(id)!
    const middle = x + widthOf(isLane) / 2
    const top: [number, number] = [middle, y]
    const bottom: [number, number] = [middle, y + BOX.height]
    if (isLane) return [top, bottom]
    return [i === 0 ? bottom : top]
  })

const aside = ({ from, to }: Edge, places: Places): [number, number][] =>
  [from, to].map((id) => {
    const { x, y } = places.get(id)!
    return [x + BOX.width, y + BOX.height / 2]
  })

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}
