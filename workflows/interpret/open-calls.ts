import type { Program, ProgramNode } from '../language/definition.ts'
import type { Frame } from './frames.ts'
import type { Rows } from './rows.ts'
import type { RunNode } from './run-state.ts'

/** More than it takes to continue a workflow as new. */
const SOON_MS = 10_000

export interface OpenCallsDeps {
  program: Program
  rows: Rows
  /** How many calls of the run may be in progress. */
  limit: number
  /** The time, in milliseconds since the epoch. */
  clock: () => number
}

/** The calls of a run in one segment: which may start, and the frames whose calls must wait for the end of others. */
export class OpenCalls {
  /** The calls that may start. */
  private room = 0
  /** The frames whose ready nodes are calls, of which too many are in progress. */
  private readonly held = new Set<Frame>()
  private readonly deps: OpenCallsDeps

  constructor(deps: OpenCallsDeps) {
    this.deps = deps
  }

  /** Counts the calls in progress: from then on as many may start as the limit leaves. */
  measure(): void {
    this.room = this.deps.limit - this.list().length
  }

  /** A call has started. */
  take(): void {
    this.room -= 1
  }

  /** The first of the ready nodes that may start. `held`: all are calls, of which too many are in progress. */
  firstOf(ready: ProgramNode[]): ProgramNode | 'held' | undefined {
    const next = this.room > 0 ? ready[0] : ready.find(({ effect }) => effect !== 'external')
    return next ?? (ready.length > 0 ? 'held' : undefined)
  }

  /** Leaves a frame until another call ends. */
  hold(frame: Frame): void {
    this.held.add(frame)
  }

  /** The frames whose calls wait, if this segment has ended others: no later segment would start them. */
  release(): Frame[] {
    if (this.held.size === 0) return []
    this.measure()
    if (this.room <= 0) return []
    const released = [...this.held]
    this.held.clear()
    return released
  }

  /** Whether a call is in progress, or its next attempt begins soon. */
  isCalling(): boolean {
    const soon = this.deps.clock() + SOON_MS
    return this.list().some(({ next_attempt_at: next }) => !next || Date.parse(next) < soon)
  }

  /** The calls that have not ended. */
  private list(): RunNode[] {
    const { program, rows } = this.deps
    const isCall = ({ node_id }: RunNode) => program.nodes[node_id]?.effect === 'external'
    return rows.open().filter((row) => row.status === 'running' && isCall(row))
  }
}
