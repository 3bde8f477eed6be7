import type { Definition, Edge, NodeSpec } from '../language/definition.ts'
import type { NodeType } from '../nodes/define.ts'

/** What is known about the order of a definition's nodes before a run. */
export interface Graph {
  /** Reachable from the first node. */
  reachable: ReadonlySet<string>
  /** A cycle, as ids, or undefined. With a cycle there is no order: `mayPrecede` and `surelyPrecedes` are false. */
  cycle: string[] | undefined
  /** Whether a node can have run before another starts. */
  mayPrecede(id: string, node: string): boolean
  /** Whether a node has run in every run in which another, reachable one starts. */
  surelyPrecedes(id: string, node: string): boolean
  /** Whether in every run that comes to a node one of these has completed, before it or as that node. */
  oneSurelyCompletes(ids: readonly string[], node: string): boolean
  /** Whether a node has run in every run, or iteration, that ends after one of these last nodes. */
  surelyEnds(id: string, nodes: readonly string[]): boolean
}

/**
 * Analyses a graph in one pass over its edges in topological order. Sets of nodes are bitsets, so that n nodes and e
 * edges take time in proportion to e × n / 32.
 */
export function graphOf(
  definition: Pick<Definition, 'nodes' | 'edges'>,
  typeOf: (node: NodeSpec) => NodeType | undefined,
): Graph {
  // Duplicate ids are reported elsewhere; the last node of an id counts.
  const specs = [...new Map(definition.nodes.map((node) => [node.id, node])).values()]
  const index = new Map(specs.map((node, at) => [node.id, at]))
  const nodes = specs.map((node): Vertex => ({ node, out: [], into: [] }))
  for (const { from, handle, to } of definition.edges) {
    const [source, target] = [index.get(from), index.get(to)]
    if (source === undefined || target === undefined) continue
    const arc = { from: source, handle, to: target }
    nodes[source]!.out.push(arc)
    nodes[target]!.into.push(arc)
  }
  const reachable = reachedFrom(nodes)
  const cycle = findCycle(nodes)
  const order = cycle ? [] : topological(nodes)
  const before = ancestors(nodes, order)
  const { certain, ended } = precedents(nodes, order, reachable, before, typeOf)
  const ends = new Map<readonly string[], Bitset>()
  const holds = (sets: (Bitset | undefined)[]) => (id: string, node: string) => {
    const [at, of] = [index.get(id), index.get(node)]
    return at !== undefined && of !== undefined && (sets[of]?.has(at) ?? false)
  }
  return {
    reachable: new Set(specs.filter((_, at) => reachable[at]).map(({ id }) => id)),
    cycle: cycle?.map((at) => specs[at]!.id),
    mayPrecede: holds(before),
    surelyPrecedes: holds(certain),
    oneSurelyCompletes(ids, node) {
      const at = index.get(node)
      return at !== undefined && !cycle && !isReachedWithout(nodes, new Set(ids), at)
    },
    surelyEnds(id, among) {
      const at = index.get(id)
      if (at === undefined || cycle) return false
      const found = ends.get(among) ?? ended(among.map((one) => index.get(one)!))
      ends.set(among, found)
      return found.has(at)
    },
  }
}

/** An edge between two nodes, by their indexes. */
interface Arc extends Pick<Edge, 'handle'> {
  from: number
  to: number
}

interface Vertex {
  node: NodeSpec
  out: Arc[]
  into: Arc[]
}

class Bitset {
  private readonly words: Uint32Array

  constructor(size: number) {
    this.words = new Uint32Array(Math.ceil(size / 32))
  }

  has(at: number): boolean {
    return (this.words[at >>> 5]! & (1 << (at & 31))) !== 0
  }

  add(at: number): this {
    this.words[at >>> 5]! |= 1 << (at & 31)
    return this
  }

  /** Adds all of another. */
  unite(other: Bitset | undefined): this {
    if (other) for (let word = 0; word < this.words.length; word++) this.words[word]! |= other.words[word]!
    return this
  }

  /** Removes what another does not have. */
  intersect(other: Bitset): this {
    for (let word = 0; word < this.words.length; word++) this.words[word]! &= other.words[word]!
    return this
  }

  copy(): Bitset {
    return new Bitset(this.words.length * 32).unite(this)
  }
}

function reachedFrom(nodes: Vertex[]): boolean[] {
  const reached = nodes.map((_, at) => at === 0)
  const queue = nodes.length > 0 ? [0] : []
  for (let at = queue.pop(); at !== undefined; at = queue.pop())
    for (const { to } of nodes[at]!.out)
      if (!reached[to]) {
        reached[to] = true
        queue.push(to)
      }
  return reached
}

/** Whether a path leads to a node, and through it, on which none of these nodes certainly completes. */
function isReachedWithout(nodes: Vertex[], ids: ReadonlySet<string>, target: number): boolean {
  const completes = (at: number) => {
    const { id, when, on_error } = nodes[at]!.node
    return ids.has(id) && when === undefined && on_error === undefined
  }
  const seen = new Set([0])
  for (const at of seen) {
    if (at === target && !completes(at)) return true
    for (const { handle, to } of nodes[at]!.out) if (handle === 'error' || !completes(at)) seen.add(to)
  }
  return false
}

/** A depth-first search without recursion; the path is the stack. */
function findCycle(nodes: Vertex[]): number[] | undefined {
  const targets = (at: number) => nodes[at]!.out.map(({ to }) => to)
  const done = new Set<number>()
  for (const root of nodes.keys()) {
    if (done.has(root)) continue
    const path = [{ at: root, rest: targets(root) }]
    const open = new Set([root])
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const to = top.rest.pop()
      if (to === undefined) {
        path.pop()
        open.delete(top.at)
        done.add(top.at)
      } else if (open.has(to)) {
        const found = path.map(({ at }) => at)
        return found.slice(found.indexOf(to))
      } else if (!done.has(to)) {
        open.add(to)
        path.push({ at: to, rest: targets(to) })
      }
    }
  }
  return undefined
}

/** Orders each node after all nodes that lead to it. */
function topological(nodes: Vertex[]): number[] {
  const waiting = nodes.map(({ into }) => into.length)
  const order = [...nodes.keys()].filter((at) => waiting[at] === 0)
  for (const at of order)
    for (const { to } of nodes[at]!.out) {
      waiting[to]! -= 1
      if (waiting[to] === 0) order.push(to)
    }
  return order
}

/** The ancestors of each node: all nodes from which a path leads to it. */
function ancestors(nodes: Vertex[], order: number[]): (Bitset | undefined)[] {
  const found: (Bitset | undefined)[] = []
  for (const at of order) {
    const set = new Bitset(nodes.length)
    for (const { from } of nodes[at]!.into) set.add(from).unite(found[from])
    found[at] = set
  }
  return found
}

/** The nodes that have run whenever a node starts, for each node. */
function precedents(
  nodes: Vertex[],
  order: number[],
  reachable: boolean[],
  before: (Bitset | undefined)[],
  typeOf: (node: NodeSpec) => NodeType | undefined,
): { certain: (Bitset | undefined)[]; ended: (among: number[]) => Bitset } {
  // A node that is skipped leaves by its first handle.
  const skippable = ({ from, handle }: Pick<Arc, 'from' | 'handle'>) => {
    const { node } = nodes[from]!
    return node.when !== undefined && handle === leavesBy(node, typeOf)
  }
  const consequences = consequencesOf(nodes, order, typeOf)
  const branches = branchesOf(nodes, consequences)
  // The nodes that run in every run in which the node runs, before it or in parallel.
  const companions: Bitset[] = []
  const certain: Bitset[] = []
  const ranBy = (arc: Pick<Arc, 'from' | 'handle'>) => {
    const { from, handle } = arc
    const ran = companions[from]!.copy().unite(branches[from]!.get(handle))
    return skippable(arc) ? ran : ran.unite(consequences[from])
  }
  for (const at of order) {
    const arrivals = nodes[at]!.into.filter(({ from }) => reachable[from])
    companions[at] = common(nodes.length, unique(arrivals), ranBy)
    // With `join: all` every branch has ended; with `any` only the one that arrived first.
    certain[at] =
      nodes[at]!.node.join === 'any'
        ? common(nodes.length, arrivals, (arc) => {
            const ran = certain[arc.from]!.copy()
            return skippable(arc) ? ran : ran.add(arc.from)
          })
        : companions[at].copy().intersect(before[at]!)
  }
  const ended = (among: number[]) =>
    common(
      nodes.length,
      among.filter((at) => reachable[at]).flatMap((at) => exitsOf(at, nodes[at]!, typeOf)),
      // A node without handles ends the run while others may be open.
      (exit) => (exit.handle === '' ? certain[exit.from]!.copy().add(exit.from) : ranBy(exit)),
    )
  return { certain, ended }
}

/** The handle by which a node leaves that is skipped; that of an unknown type is not known. */
function leavesBy(node: NodeSpec, typeOf: (node: NodeSpec) => NodeType | undefined): string {
  const type = typeOf(node)
  return type?.handles(node.config).find(({ name }) => name !== type.body)?.name ?? 'success'
}

/** The handles of a node by which nothing follows. */
function exitsOf(
  from: number,
  { node, out }: Vertex,
  typeOf: (node: NodeSpec) => NodeType | undefined,
): Pick<Arc, 'from' | 'handle'>[] {
  const type = typeOf(node)
  if (!type) return []
  const handles = type.handles(node.config).map(({ name }) => name)
  if (handles.length === 0) return [{ from, handle: '' }]
  const followed = new Set(out.map(({ handle }) => handle))
  return handles
    .filter((handle) => handle !== type.body && !followed.has(handle))
    .filter((handle) => handle !== 'error' || node.on_error === 'end')
    .map((handle) => ({ from, handle }))
}

/** Each node, and all nodes that certainly run once it has run. */
function consequencesOf(
  nodes: Vertex[],
  order: number[],
  typeOf: (node: NodeSpec) => NodeType | undefined,
): Bitset[] {
  const found: Bitset[] = []
  for (const at of [...order].reverse()) {
    const { node, out } = nodes[at]!
    const handle = onlyHandle(node, out, typeOf(node))
    const set = new Bitset(nodes.length).add(at)
    for (const arc of out)
      if (arc.handle === handle && nodes[arc.to]!.node.when === undefined) set.unite(found[arc.to])
    found[at] = set
  }
  return found
}

/** The handle by which a node certainly leaves: no other one has an edge. */
function onlyHandle(node: NodeSpec, out: Arc[], type: NodeType | undefined): string | undefined {
  if (!type || node.on_error === 'end' || out.some(({ handle }) => handle === 'error')) return undefined
  const names = type.handles(node.config).map(({ name }) => name)
  // A loop leaves by its body's handle and then by another.
  const last = names.filter((name) => name !== 'error' && name !== type.body)
  return last.length === 1 ? last[0] : undefined
}

/** The nodes that certainly run once a node has left by a handle, for each node and handle. */
function branchesOf(nodes: Vertex[], consequences: Bitset[]): Map<string, Bitset>[] {
  return nodes.map(({ out }) => {
    const branches = new Map<string, Bitset>()
    for (const { handle, to } of out) {
      const set = branches.get(handle) ?? new Bitset(nodes.length)
      branches.set(handle, nodes[to]!.node.when === undefined ? set.unite(consequences[to]) : set)
    }
    return branches
  })
}

/** The intersection of what ran by each arrival; empty without arrivals. */
function common<T>(size: number, arrivals: T[], ranBy: (arrival: T) => Bitset): Bitset {
  let found: Bitset | undefined
  for (const arc of arrivals) found = found ? found.intersect(ranBy(arc)) : ranBy(arc)
  return found ?? new Bitset(size)
}

/** The distinct edges. */
function unique(arcs: Arc[]): Arc[] {
  return [...new Map(arcs.map((arc) => [`${arc.from} ${arc.handle}`, arc])).values()]
}
