import type { Program } from '../language/definition.ts'
import type { RunError, RunNode } from './run-state.ts'
import { type NodeState, step } from './step.ts'

/** A node of the retried run. */
export type RetriedNode = Pick<RunNode, 'path' | 'node_id' | 'node_type' | 'status' | 'handle' | 'undoes'>

/** What a retry does with the nodes outside of any loop, or with those of one item. */
export interface PreparedFrame {
  /** The nodes whose outputs are reused, in the order of the program. */
  reused: string[]
  /** The loops that continue: their completed items keep their results. */
  resumed: string[]
}

export interface PreparedRetry extends PreparedFrame {
  /** The nodes that may run. */
  again: string[]
}

/** `again`: run all items of the loop `from` again. */
export interface RetryStart {
  from: string
  again?: boolean
}

/** The default start of a retry: the node that failed the run; null: the first node of the workflow. */
export function failedNode(error: RunError | null, rows: RetriedNode[]): string | null {
  const id = error?.node_id
  return id !== undefined && rows.some(({ path, node_id }) => path === '' && node_id === id) ? id : null
}

/** The nodes that the retried run has undone, or begun to. */
export const undoneNodes = (rows: RetriedNode[]): string[] => [
  ...new Set(rows.flatMap(({ undoes, status }) => (undoes && status === 'completed' ? [undoes] : []))),
]

/**
 * The nodes that get idempotency keys of their own in a retry: those that the retried run has undone, and all after them.
 * An undone node must have its effect again, and what follows reads its new output: a receiver refuses a known key with
 * another content, or answers with the result of before. A node whose undo did not succeed keeps its key, because its
 * effect stands: one that completed, or a loop whose completed items were to be undone.
 */
export function renewedNodes(program: Program, rows: RetriedNode[]): string[] {
  const undone = undoneNodes(rows).filter((id) => Object.hasOwn(program.nodes, id))
  const undoable = new Set(Object.values(program.nodes).map(({ undoes }) => undoes))
  const begun = new Set(rows.map(({ undoes }) => undoes))
  const stands = ({ path, node_id, status }: RetriedNode) =>
    path === '' &&
    (status === 'completed' || begun.has(node_id)) &&
    undoable.has(node_id) &&
    !undone.includes(node_id)
  const kept = new Set(rows.filter(stands).map(({ node_id }) => node_id))
  const after = downstreamOf(program, new Set(undone))
  const isRenewed = (id: string) => after.has(id) && !kept.has(id)
  return Object.keys(program.nodes).filter((id) => [id, ...loopsAround(program, id)].every(isRenewed))
}

/** The loops around a node, the outermost first. */
export function loopsAround(program: Program, id: string): string[] {
  const around: string[] = []
  for (let loop = program.nodes[id]?.loop; loop !== undefined; loop = program.nodes[loop]?.loop)
    around.unshift(loop)
  return around
}

/**
 * Decides which nodes outside of any loop a retry reuses: all settled ones, except for `from` and all nodes downstream
 * of a node that runs again. `program` may be a newer version of the workflow.
 * @returns the reason if the retry cannot start there.
 */
export function prepareRetry(
  program: Program,
  rows: RetriedNode[],
  { from, again = false }: RetryStart,
): PreparedRetry | string {
  if (!Object.hasOwn(program.nodes, from)) return `the version has no node ${from}`
  if (program.nodes[from]!.role) return `${from} runs only at the end of a run: no retry can start with it`
  const top = new Map(rows.filter(({ path }) => path === '').map((row) => [row.node_id, row]))
  const settled = settledIn(program, top)
  const ids = bodyOf(program, undefined)
  const before = upstreamOf(program, from)
  const missing = ids.filter((id) => before.has(id) && !settled(id))
  if (missing.length > 0)
    return `the nodes before ${from} must have completed, but ${missing.join(', ')} did not in this run: start with ${missing[0]}`
  const prepared = prepareFrame(program, top, { from: [from], anew: again ? [from] : [] })
  const states = new Map<string, NodeState>(prepared.reused.map((id) => [id, top.get(id)!]))
  if (!step(program, states).ready.includes(from))
    return `the run did not reach ${from}: no edge that leads to it was taken`
  // What was undone is to be done again.
  const undone = undoneNodes(rows).filter((id) => Object.hasOwn(program.nodes, id))
  const all = prepareFrame(program, top, {
    from: [from, ...undone],
    anew: again ? [from, ...undone] : undone,
  })
  const reused = new Set(all.reused)
  const runs = (id: string) => !reused.has(loopsAround(program, id)[0] ?? id)
  return { ...all, again: Object.keys(program.nodes).filter(runs) }
}

/**
 * Decides what a retry does with the nodes of one frame: those outside of any loop, or of one item of `loop`. Nodes in
 * `from` run again. A loop that runs again continues where it stopped, unless it is in `anew`, or its list may
 * change.
 */
export function prepareFrame(
  program: Program,
  rows: ReadonlyMap<string, RetriedNode>,
  { loop, from, anew = [] }: { loop?: string; from: string[]; anew?: string[] },
): PreparedFrame {
  const ids = bodyOf(program, loop)
  const settled = settledIn(program, rows)
  const first = new Set([...from, ...ids.filter((id) => !settled(id))])
  const after = downstreamOf(program, new Set([...first].flatMap((id) => nextOf(program, id))))
  const again = (id: string) => first.has(id) || after.has(id)
  const loops = new Set(Object.values(program.nodes).map((node) => node.loop))
  const hasStarted = (id: string) => rows.get(id)?.node_type === program.nodes[id]!.type
  const goesOn = (id: string) => first.has(id) && !after.has(id) && !anew.includes(id)
  return {
    reused: ids.filter((id) => !again(id)),
    resumed: ids.filter((id) => loops.has(id) && hasStarted(id) && goesOn(id)),
  }
}

const bodyOf = (program: Program, loop: string | undefined) =>
  Object.keys(program.nodes).filter((id) => program.nodes[id]!.loop === loop && !program.nodes[id]!.role)

/** Whether a node need not run again. A node without a handle failed or stopped the run, or was cancelled. */
const settledIn = (program: Program, rows: ReadonlyMap<string, RetriedNode>) => (id: string) => {
  const row = rows.get(id)
  return row?.node_type === program.nodes[id]!.type && (row.status === 'skipped' || row.handle !== null)
}

const nextOf = (program: Program, id: string) => Object.values(program.nodes[id]?.next ?? {}).flat()

/** The nodes from which a node can be reached. */
function upstreamOf(program: Program, id: string): Set<string> {
  const found = new Set<string>()
  const open = [id]
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const edge of program.nodes[next]?.incoming ?? []) {
      const from = edge.slice(0, edge.indexOf(':'))
      if (from === id || found.has(from)) continue
      found.add(from)
      open.push(from)
    }
  return found
}

/** The nodes and all that can be reached from them. */
function downstreamOf(program: Program, ids: Set<string>): Set<string> {
  const found = new Set(ids)
  const open = [...ids]
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const to of nextOf(program, next)) {
      if (found.has(to)) continue
      found.add(to)
      open.push(to)
    }
  return found
}
