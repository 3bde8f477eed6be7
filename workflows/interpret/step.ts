import type { Program, ProgramNode } from '../language/definition.ts'
import { type NodeStatus, OPEN_NODE_STATUSES } from '../shared/statuses.ts'

/**
 * The rules of the graph, without side effects. An edge is open until its source node has settled; then it is taken
 * (the node left by its handle) or dead. A node starts as its `join` says, and is skipped when all its edges are dead,
 * which makes its own edges dead (dead-path elimination).
 */

/** `handle` is the handle by which a settled node left; null: all its edges are dead. */
export interface NodeState {
  status: NodeStatus
  handle: string | null
}

/** By node id; a node that was not reached is absent. */
export type NodeStates = ReadonlyMap<string, NodeState>

export interface Step {
  /** May start now, in the order of the program. */
  ready: string[]
  /** Will never start. */
  skipped: string[]
}

/**
 * The next step after `states` of the nodes outside of any loop, or in the body of `loop`. If no node is ready and none
 * is open, the run or the iteration has ended.
 */
export function step(program: Program, states: NodeStates, loop?: string): Step {
  const known = new Map(states)
  const skipped: string[] = []
  const unreached = Object.values(program.nodes).filter(
    (node) => node.loop === loop && node.role === undefined && !known.has(node.id),
  )
  // A skipped node can cause earlier nodes in the order to be skipped: repeat until nothing changes.
  for (;;) {
    const ready: string[] = []
    const before = skipped.length
    for (const node of unreached) {
      if (known.has(node.id)) continue
      const found = verdict(program, node, known)
      if (found === 'start') ready.push(node.id)
      if (found !== 'skip') continue
      known.set(node.id, { status: 'skipped', handle: null })
      skipped.push(node.id)
    }
    if (skipped.length === before) return { ready, skipped }
  }
}

/** The handle by which a failed node leaves: `error` if it has an edge or ends the branch; null fails the run. */
export function errorHandle(node: ProgramNode, firstHandle: string): string | null {
  if (node.next.error?.length || node.on_error === 'end') return 'error'
  return node.on_error === 'continue' ? firstHandle : null
}

export const isOpen = ({ status }: NodeState): boolean =>
  (OPEN_NODE_STATUSES as readonly NodeStatus[]).includes(status)

function verdict(program: Program, node: ProgramNode, states: NodeStates): 'start' | 'skip' | 'wait' {
  if (node.id === program.start) return 'start'
  let [taken, open] = [false, false]
  for (const edge of node.incoming) {
    const state = edgeState(edge, states)
    if (state === 'taken') taken = true
    else if (state === 'open') open = true
  }
  if (taken && (node.join === 'any' || !open)) return 'start'
  return open ? 'wait' : 'skip'
}

function edgeState(edge: string, states: NodeStates): 'open' | 'taken' | 'dead' {
  const colon = edge.indexOf(':')
  const from = states.get(edge.slice(0, colon))
  if (!from || isOpen(from)) return 'open'
  return from.handle === edge.slice(colon + 1) ? 'taken' : 'dead'
}
