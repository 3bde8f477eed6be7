import type { ProgramNode } from '../language/definition.ts'
import {
  type Frame,
  framesOf,
  isRepeat,
  loopKey,
  nodeKey,
  type OpenLoop,
  openFrame,
  typeOfLoop,
} from './frames.ts'
import type { LoopItem, RunIteration, RunLoop, RunNode, RunState } from './run-state.ts'
import { isOpen, type NodeState, type NodeStates } from './step.ts'

/** A loop to write; `items` only for a new one. */
export type LoopChange = RunLoop & { items?: unknown[]; open: boolean }

/** The rows of a run in one segment, and the changes of the segment. The rows are copies. */
export class Rows {
  readonly frames: Map<string, Frame>
  readonly loops: Map<string, OpenLoop>
  readonly root: Frame
  /** New and changed rows. */
  readonly changed = new Set<RunNode>()
  readonly changedIterations = new Set<RunIteration>()
  readonly changedLoops = new Map<string, LoopChange>()
  /** The nodes that ran, as `node: status`, in order. */
  readonly ran: string[] = []
  /** The characters of the inputs, outputs and results to write. */
  characters = 0
  private readonly segment: number
  private readonly clock: () => number
  private lastTime = { ms: NaN, text: '' }

  constructor(
    state: Pick<RunState, 'nodes'> & Partial<Pick<RunState, 'loops' | 'iterations'>>,
    segment: number,
    clock: () => number,
  ) {
    const { frames, loops } = framesOf(state)
    this.frames = frames
    this.loops = loops
    this.root = frames.get('')!
    this.segment = segment
    this.clock = clock
  }

  add(frame: Frame, node: ProgramNode): RunNode {
    const row: RunNode = {
      path: frame.path,
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
      position: frame.rows.size,
      started_at: this.time(),
      ended_at: null,
      ...(node.role && { role: node.role, undoes: node.undoes ?? null }),
    }
    frame.rows.set(node.id, row)
    this.changed.add(row)
    return row
  }

  /** Takes back the row of a node that is left to the next segment. */
  remove(frame: Frame, row: RunNode): void {
    frame.rows.delete(row.node_id)
    this.changed.delete(row)
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
    this.ran.push(`${nodeKey(row.path, row.node_id)}: ${what}`)
  }

  addLoop(
    frame: Frame,
    id: string,
    items: unknown[],
    limits: Pick<RunLoop, 'concurrency' | 'on_item_error'> & { count?: number },
  ): OpenLoop {
    const loop = loopKey(frame.path, id)
    const progress = { count: items.length, next: 0, succeeded: 0, failed: 0, bytes: 0 }
    const state = { loop, ...progress, ...limits, segment: this.segment }
    const open: OpenLoop = { state, id, within: frame, open: new Map() }
    this.loops.set(loop, open)
    this.changedLoops.set(loop, { ...state, items, open: true })
    return open
  }

  /** Opens a loop that keeps results from the retried run. */
  resumeLoop(frame: Frame, id: string, state: RunLoop): OpenLoop {
    const open: OpenLoop = { state, id, within: frame, open: new Map() }
    this.loops.set(state.loop, open)
    this.changeLoop(open)
    return open
  }

  /** Sets the time until which a loop pauses between two turns; null: it goes on. */
  setPause(row: RunNode, until: number | null): void {
    row.wait_until = until === null ? null : new Date(until).toISOString()
    this.changed.add(row)
  }

  /** Marks all items of the loop as opened. */
  endItems(loop: OpenLoop): void {
    loop.state.next = loop.state.count
    this.changeLoop(loop)
  }

  /** Opens the next item of a loop. */
  addIteration(loop: OpenLoop, { index, item, nodes = [] }: LoopItem): Frame {
    const iteration: RunIteration = {
      loop: loop.state.loop,
      index,
      status: 'running',
      item,
      output: null,
      error: null,
      segment: this.segment,
      settled_segment: null,
      started_at: this.time(),
      ended_at: null,
    }
    loop.state.next = index + 1
    this.changeLoop(loop)
    this.changedIterations.add(iteration)
    const frame = openFrame(this.frames, loop, iteration)
    for (const row of nodes) frame.rows.set(row.node_id, row)
    return frame
  }

  endIteration(frame: Frame, end: Pick<RunIteration, 'status'> & Partial<RunIteration>): void {
    const { iteration, loop } = frame
    if (!iteration || !loop) return
    Object.assign(iteration, end, { settled_segment: this.segment, ended_at: this.time() })
    this.changedIterations.add(iteration)
    this.frames.delete(frame.path)
    loop.open.delete(frame.path)
    if (end.status === 'completed') loop.state.succeeded += 1
    if (end.status === 'failed') loop.state.failed += 1
    this.changeLoop(loop)
  }

  endLoop(loop: OpenLoop): void {
    this.loops.delete(loop.state.loop)
    this.changeLoop(loop, false)
  }

  private changeLoop({ state }: OpenLoop, open = true): void {
    const { items } = this.changedLoops.get(state.loop) ?? {}
    this.changedLoops.set(state.loop, { ...state, ...(items && { items }), open })
  }

  /** The nodes that the run waits for. An ended external node counts until the workflow has reported its end. */
  open(frames: Iterable<Frame> = this.frames.values()): RunNode[] {
    return [...frames].flatMap(({ rows }) =>
      [...rows.values()].filter(({ settled_segment }) => settled_segment === null),
    )
  }

  /**
   * Cancels all open nodes, iterations and loops, except some nodes outside of loops. A node that has ended, of which the
   * workflow was not told, stays as it is.
   */
  cancel(except?: ReadonlySet<RunNode>): void {
    for (const row of this.open()) {
      if (except?.has(row)) continue
      if (isOpen(row)) this.settle(row, 'cancelled', null)
      else if (except) this.settle(row, row.status, row.handle)
    }
    for (const frame of [...this.frames.values()]) this.endIteration(frame, { status: 'cancelled' })
    for (const loop of [...this.loops.values()]) this.endLoop(loop)
  }

  /** The nodes outside of any loop, for display; the status of an open loop is its progress. */
  progress() {
    return [...this.root.rows.values()].map((row) => {
      const loop = this.loops.get(row.node_id)
      if (!loop) return row
      const { succeeded, failed, count } = loop.state
      const of = isRepeat(loop) ? `at most ${count} turns` : `${count} items`
      return { ...row, status: `${succeeded + failed} of ${of}` }
    })
  }

  states(frame: Frame): NodeStates {
    const states = new Map<string, NodeState>(frame.rows)
    for (const row of this.open([frame])) states.set(row.node_id, { status: 'running', handle: null })
    // In its own body, a loop counts as completed by the handle of the body.
    if (frame.loop) {
      const handle = typeOfLoop(frame.loop)?.body ?? null
      states.set(frame.loop.id, { status: 'completed', handle })
    }
    return states
  }

  private time(): string {
    const ms = this.clock()
    if (ms !== this.lastTime.ms) this.lastTime = { ms, text: new Date(ms).toISOString() }
    return this.lastTime.text
  }
}
