import type { Program } from '../definition/types.ts'
import type { RunError, RunNode } from './run-state.ts'
import { type NodeState, step } from './step.ts'

/** A node of the retried run. */
export type RetriedNode = Pick<RunNode, 'path' | 'node_id' | 'node_type' | 'status' | 'handle'>

export interface RetryPlan {
  /** The nodes whose outputs are reused, in the order of the program. */
  reused: string[]
  /** The nodes that may run. */
  again: string[]
}

/** The node with which a retry starts if none is named: the one that failed the run; null: the first of the workflow. */
export function failedNode(error: RunError | null, rows: RetriedNode[]): string | null {
  const id = error?.node_id
  return id !== undefined && rows.some(({ path, node_id }) => path === '' && node_id === id) ? id : null
}

/**
 * Which nodes of a run a retry reuses that starts with `from`: all that have settled, except for `from` and all that
 * comes after a node that runs again. `program` may be a newer version of the workflow.
 * @returns the reason if the retry cannot start there.
 */
export function planRetry(program: Program, rows: RetriedNode[], from: string): RetryPlan | string {
  if (!Object.hasOwn(program.nodes, from)) {
    const inLoop = rows.some(({ path, node_id }) => path !== '' && node_id === from)
    return inLoop ? IN_LOOP(from) : `the version has no node ${from}`
  }
  const top = new Map(rows.filter(({ path }) => path === '').map((row) => [row.node_id, row]))
  if (!top.has(from) && rows.some(({ node_id }) => node_id === from)) return IN_LOOP(from)
  const all = Object.keys(program.nodes)
  // The body of a loop runs again with it, or not at all.
  const ids = all.filter((id) => program.nodes[id]!.loop === undefined)
  const settled = (id: string) => {
    const row = top.get(id)
    // Without a handle it failed or stopped the run, or was cancelled.
    return row?.node_type === program.nodes[id]!.type && (row.status === 'skipped' || row.handle !== null)
  }
  const before = upstreamOf(program, from)
  const missing = ids.filter((id) => before.has(id) && !settled(id))
  if (missing.length > 0)
    return `the nodes before ${from} must have completed, but ${missing.join(', ')} did not in this run: start with ${missing[0]}`
  const again = downstreamOf(program, new Set([from, ...ids.filter((id) => !settled(id))]))
  const reused = ids.filter((id) => !again.has(id))
  const states = new Map<string, NodeState>(reused.map((id) => [id, top.get(id)!]))
  if (!step(program, states).ready.includes(from))
    return `the run did not reach ${from}: no edge that leads to it was taken`
  return { reused, again: all.filter((id) => again.has(id)) }
}

const IN_LOOP = (id: string) => `${id} is inside a loop: start with the loop, or with a node before it`

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
    for (const to of Object.values(program.nodes[next]?.next ?? {}).flat()) {
      if (found.has(to)) continue
      found.add(to)
      open.push(to)
    }
  return found
}
