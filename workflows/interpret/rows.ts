import type { ProgramNode } from '../definition/types.ts'
import type { RunNode } from './run-state.ts'
import type { NodeState, NodeStates } from './step.ts'

/** The rows of a run's nodes in one segment, and what the segment changes in them. Copies: the caller's stay as they are. */
export class Rows {
  /** New and changed rows. */
  readonly changed = new Set<RunNode>()
  /** What became of nodes, as `node: status`, in order. */
  readonly ran: string[] = []
  readonly byId: Map<string, RunNode>
  private readonly segment: number
  private readonly clock: () => number

  constructor(nodes: RunNode[], segment: number, clock: () => number) {
    this.byId = new Map(nodes.map((row) => [row.node_id, { ...row }]))
    this.segment = segment
    this.clock = clock
  }

  add(node: ProgramNode): RunNode {
    const row: RunNode = {
      path: '',
      node_id: node.id,
      node_type: node.type,
      title: node.title,
      status: 'running',
      attempt: 1,
      input: null,
      output: null,
      handle: null,
      error: null,
      wait_until: null,
      segment: this.segment,
      settled_segment: null,
      position: this.byId.size,
      started_at: this.time(),
      ended_at: null,
    }
    this.byId.set(node.id, row)
    this.changed.add(row)
    return row
  }

  settle(row: RunNode, status: RunNode['status'], handle: string | null): void {
    row.status = status
    row.handle = handle
    row.settled_segment = this.segment
    row.ended_at ??= this.time()
    this.changed.add(row)
    this.note(row, status)
  }

  note(row: RunNode, what: string): void {
    this.ran.push(`${row.node_id}: ${what}`)
  }

  /** The nodes that the run waits for. An ended external node counts until the workflow has reported its end. */
  open(): RunNode[] {
    return [...this.byId.values()].filter((row) => row.settled_segment === null)
  }

  states(): NodeStates {
    const states = new Map<string, NodeState>(this.byId)
    for (const row of this.open()) states.set(row.node_id, { status: 'running', handle: null })
    return states
  }

  private time(): string {
    return new Date(this.clock()).toISOString()
  }
}
