/** The first implementation of graphOf, roughly cubic: the oracle of its property test. */

import type { Definition, Edge, NodeSpec } from '../../workflows/language/definition.ts'
import type { NodeType } from '../../workflows/nodes/define.ts'

/** Facts about the order of a definition's nodes before a run. */
export interface OracleGraph {
  /** The nodes that can be reached from the first node. */
  reachable: ReadonlySet<string>
  /** A cycle, as node ids; undefined without one. */
  cycle: string[] | undefined
  /** Everything that may have run before a node. */
  upstream(id: string): ReadonlySet<string>
  /** The upstream nodes that have run whenever the node runs. */
  certain(id: string): ReadonlySet<string>
}

export function oracleGraphOf(
  definition: Pick<Definition, 'nodes' | 'edges'>,
  typeOf: (node: NodeSpec) => NodeType | undefined,
): OracleGraph {
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]))
  const edges = definition.edges.filter(({ from, to }) => nodes.has(from) && nodes.has(to))
  const out = groupBy(edges, ({ from }) => from)
  const into = groupBy(edges, ({ to }) => to)
  const first = definition.nodes[0]?.id
  const reachable =
    first === undefined ? new Set<string>() : reach(first, (id) => out.get(id)?.map(({ to }) => to))
  const upstream = remember((id) => {
    const found = reach(id, (at) => into.get(at)?.map(({ from }) => from))
    found.delete(id)
    return found
  })

  const arrivals = (id: string) => (into.get(id) ?? []).filter(({ from }) => reachable.has(from))
  const skippable = (id: string) => nodes.get(id)!.when !== undefined
  /** Whether the node may have been skipped: it then leaves by its first handle. */
  const maybeSkipped = ({ from, handle }: Edge) => {
    const type = typeOf(nodes.get(from)!)
    const [first] = type?.handles(nodes.get(from)!.config).filter(({ name }) => name !== type.body) ?? []
    return skippable(from) && handle === (first?.name ?? 'success')
  }

  /** Whether a node that runs always continues by this handle, because no other handle leads on. */
  const surelyLeavesBy = (id: string, handle: string): boolean => {
    const node = nodes.get(id)!
    const type = typeOf(node)
    if (!type) return false
    const names = type.handles(node.config).map(({ name }) => name)
    const onlyWay = names.filter((name) => name !== 'error').length === 1 && names[0] === handle
    return onlyWay && node.on_error !== 'end' && !out.get(id)?.some((edge) => edge.handle === 'error')
  }

  /** The nodes that have run, or will run in any case, once these nodes have run and these edges were taken. */
  const follow = (ran: Iterable<string>, taken: Edge): Set<string> => {
    const found = new Set(ran)
    const queue = [...found]
    const start = (edge: Edge) => {
      if (skippable(edge.to) || found.has(edge.to)) return
      found.add(edge.to)
      queue.push(edge.to)
    }
    for (const edge of out.get(taken.from) ?? []) if (edge.handle === taken.handle) start(edge)
    for (let id = queue.pop(); id !== undefined; id = queue.pop())
      for (const edge of out.get(id) ?? []) if (surelyLeavesBy(id, edge.handle)) start(edge)
    return found
  }

  /** The nodes that run in every run in which the node runs, before it or in parallel. */
  const companions: (id: string) => ReadonlySet<string> = remember((id) =>
    common(
      arrivals(id).map((edge) => {
        const ran = new Set(companions(edge.from))
        if (!maybeSkipped(edge)) ran.add(edge.from)
        return follow(ran, edge)
      }),
    ),
  )

  const certain: (id: string) => ReadonlySet<string> = remember((id) => {
    const before = upstream(id)
    // At `join: all` every branch has ended; at `any` only the one that arrived first.
    if (nodes.get(id)!.join !== 'any') return new Set([...companions(id)].filter((at) => before.has(at)))
    return common(
      arrivals(id).map(
        (edge) => new Set(maybeSkipped(edge) ? certain(edge.from) : [...certain(edge.from), edge.from]),
      ),
    )
  })

  return { reachable, cycle: findCycle([...nodes.keys()], out), upstream, certain }
}

function common(sets: ReadonlySet<string>[]): ReadonlySet<string> {
  const [one, ...others] = sets
  if (one && others.length === 0) return one
  return new Set([...(one ?? [])].filter((id) => others.every((other) => other.has(id))))
}

function reach(from: string, next: (id: string) => string[] | undefined): Set<string> {
  const found = new Set([from])
  const queue = [from]
  for (let id = queue.pop(); id !== undefined; id = queue.pop())
    for (const to of next(id) ?? [])
      if (!found.has(to)) {
        found.add(to)
        queue.push(to)
      }
  return found
}

/** Depth first without recursion; the path is the stack. */
function findCycle(ids: string[], out: Map<string, Edge[]>): string[] | undefined {
  const done = new Set<string>()
  for (const root of ids) {
    if (done.has(root)) continue
    const path: { id: string; rest: string[] }[] = [{ id: root, rest: targets(out, root) }]
    const open = new Set([root])
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const to = top.rest.pop()
      if (to === undefined) {
        path.pop()
        open.delete(top.id)
        done.add(top.id)
      } else if (open.has(to)) {
        const circle = path.map(({ id }) => id)
        return circle.slice(circle.indexOf(to))
      } else if (!done.has(to)) {
        open.add(to)
        path.push({ id: to, rest: targets(out, to) })
      }
    }
  }
  return undefined
}

function groupBy(edges: Edge[], key: (edge: Edge) => string): Map<string, Edge[]> {
  const groups = new Map<string, Edge[]>()
  for (const edge of edges) {
    const group = groups.get(key(edge))
    if (group) group.push(edge)
    else groups.set(key(edge), [edge])
  }
  return groups
}

const targets = (out: Map<string, Edge[]>, id: string) => (out.get(id) ?? []).map(({ to }) => to)

function remember<T>(compute: (id: string) => T): (id: string) => T {
  const known = new Map<string, T>()
  return (id) => {
    const found = known.get(id) ?? compute(id)
    known.set(id, found)
    return found
  }
}
