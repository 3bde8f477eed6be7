import type { Command } from '../bundle/protocol.ts'
import type { Program, ProgramNode } from '../language/definition.ts'
import { NodeError } from '../language/node-error.ts'
import type { NodeLoop, NodeTurns } from '../nodes/define.ts'
import { isObject } from '../shared/is-object.ts'
import type { Limits } from '../shared/run-limits.ts'
import { earlyOutput } from './early-end.ts'
import { firstHandle, typeOf } from './execute.ts'
import { type Frame, isRepeat, loopKey, type OpenLoop } from './frames.ts'
import { at } from './open-nodes.ts'
import { renderAtEnd } from './outputs.ts'
import type { Rows } from './rows.ts'
import type { ItemResult, KeptLoop, LoopItem, RunError, RunFacts, RunLoop, RunNode } from './run-state.ts'
import { scopeOf } from './scope.ts'
import { isOpen } from './step.ts'
import { capped } from './storable.ts'

/** The rows of a loop that are read on demand: items that are not open, and results. */
export interface LoopHost {
  /** Up to `count` unopened items from the index `from`; none if all were opened. */
  items(loop: Pick<RunLoop, 'loop' | 'segment'>, from: number, count: number): Promise<LoopItem[]>
  /** The next turn of a loop that repeats, from the index `from`; its item is the result of the turn before. */
  turn(loop: Pick<RunLoop, 'loop' | 'segment'>, from: number): Promise<LoopItem>
  /** In a retry: the loop, with the results that it keeps from the retried run. */
  kept?(loop: string): Promise<KeptLoop | undefined>
  /** The results of the items that ended in earlier segments. */
  results(loop: string): Promise<ItemResult[]>
}

export interface LoopDeps {
  program: Program
  rows: Rows
  facts: RunFacts
  limits: Limits
  host: LoopHost
  commands: Command[]
  fail(row: RunNode, node: ProgramNode, error: RunError): void
  /** Nodes of the frame may be ready. */
  wake(frame: Frame): void
  /** Issues the command by which the workflow waits for a node. */
  wait(row: RunNode, node: ProgramNode): void
  clock(): number
}

/** The loops of a run in one segment: opens items in order, ends items, and leaves loops by `done`. */
export class Loops {
  private readonly due: Set<OpenLoop>
  /** The next items of each loop. */
  private readonly items = new Map<OpenLoop, LoopItem[]>()
  /** The results of this segment. */
  private readonly results = new Map<OpenLoop, ItemResult[]>()
  /** The nodes of loops that ended early in this segment, and whose outputs lack the results. */
  private readonly early = new Map<RunNode, OpenLoop>()
  /** The loops whose condition `until` holds. */
  private readonly met = new Set<OpenLoop>()
  private readonly bodies: ReadonlyMap<string, number>
  private readonly deps: LoopDeps

  constructor(deps: LoopDeps) {
    this.deps = deps
    this.bodies = bodySizes(deps.program)
    this.due = new Set(deps.rows.loops.values())
  }

  async begin(row: RunNode, frame: Frame, loop: NodeLoop | NodeTurns): Promise<void> {
    if ('max_turns' in loop) return this.beginTurns(row, frame, loop)
    const { items, concurrency, on_item_error } = loop
    const { rows, host } = this.deps
    // The items have rows of their own.
    row.input = { concurrency, on_item_error }
    const kept = await host.kept?.(loopKey(frame.path, row.node_id))
    if (kept) {
      row.status = 'waiting'
      row.output = null
      rows.note(row, `${kept.count - kept.succeeded - kept.failed} of ${kept.count} items`)
      // The list of the retried run stays: the kept results belong to its items.
      this.due.add(rows.resumeLoop(frame, row.node_id, { ...kept, concurrency, on_item_error }))
      return
    }
    if (items.length === 0) {
      rows.settle(row, 'completed', this.handle(row.node_id))
      return
    }
    row.status = 'waiting'
    row.output = null
    rows.note(row, `${items.length} items`)
    const added = rows.addLoop(frame, row.node_id, items, { concurrency, on_item_error })
    this.items.set(
      added,
      items.map((item, index) => ({ index, item })),
    )
    this.due.add(added)
  }

  private async beginTurns(row: RunNode, frame: Frame, turns: NodeTurns): Promise<void> {
    const { rows, host } = this.deps
    const { initial, max_turns: count, ...others } = turns
    row.input = { max_turns: count, ...others }
    row.status = 'waiting'
    row.output = null
    const kept = await host.kept?.(loopKey(frame.path, row.node_id))
    const before = kept ? `, ${kept.succeeded} of them before` : ''
    rows.note(row, `at most ${count} turns${before}`)
    const loop = kept
      ? rows.resumeLoop(frame, row.node_id, { ...kept, count })
      : rows.addLoop(frame, row.node_id, [initial], { ...ONE_BY_ONE, count })
    if (!kept) this.items.set(loop, [{ index: 0, item: initial }])
    if (kept?.met) this.met.add(loop)
    this.due.add(loop)
  }

  /** Opens items within the limits of concurrency, and ends the loops whose items are done. */
  async advance(): Promise<void> {
    for (const loop of this.due) {
      this.due.delete(loop)
      if (this.deps.rows.loops.has(loop.state.loop)) await this.advanceOne(loop)
    }
    // Before the next node runs, which may be an undo.
    await this.gather()
  }

  /**
   * Keeps what the open loops have done whose effects can be undone, before the run cancels them. `gather` adds the
   * results.
   */
  keepAll(): void {
    for (const loop of this.deps.rows.loops.values()) this.keep(loop)
  }

  /** Adds the results to the outputs of loops that ended early, for their undo. */
  async gather(): Promise<void> {
    for (const [row, loop] of this.early) {
      this.early.delete(row)
      const items = await this.collect(loop)
      row.output = earlyOutput(loop, items, this.deps.limits.valueBytes)
      this.deps.rows.changed.add(row)
    }
  }

  private keep(loop: OpenLoop): void {
    const { row, node } = this.nodeOf(loop)
    if (loop.state.succeeded === 0 || !node.undone_early) return
    const cancelled = [...loop.open.values()].map(({ iteration }): ItemResult => {
      const { index, item } = iteration!
      return { index, status: 'cancelled', output: null, item }
    })
    this.results.set(loop, [...(this.results.get(loop) ?? []), ...cancelled])
    row.output = earlyOutput(loop, null, this.deps.limits.valueBytes)
    this.early.set(row, loop)
  }

  /** Ends an item that has no open and no ready node. */
  endItem(frame: Frame): void {
    const { rows } = this.deps
    let output: unknown
    let member = 'output'
    let met = false
    try {
      output = this.outputOf(frame)
      member = 'until'
      met = isRepeat(frame.loop!) && this.isMet(frame)
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      this.failItem(frame, { code: error.code, message: `${member}: ${error.message}` })
      return
    }
    if (met) this.met.add(frame.loop!)
    rows.endIteration(frame, { status: 'completed', output, ...(met && { met }) })
    this.ended(frame)
    if (isRepeat(frame.loop!)) this.endTurn(frame.loop!, { index: frame.iteration!.index, item: output })
  }

  /** Between two turns a loop can pause. The next turn reads the result of this one. */
  private endTurn(loop: OpenLoop, { index, item }: LoopItem): void {
    const { rows, clock, wait } = this.deps
    if (!rows.loops.has(loop.state.loop)) return
    this.items.set(loop, [{ index: index + 1, item }])
    const { row, node } = this.nodeOf(loop)
    const { pause_ms } = row.input as NodeTurns
    if (pause_ms === 0 || this.met.has(loop) || loop.state.next >= loop.state.count) return
    rows.setPause(row, clock() + pause_ms)
    rows.note(row, `pauses after turn ${index}`)
    wait(row, node)
  }

  /** Ends an item with a failure that nothing in its body handles. */
  failItem(frame: Frame, error: RunError): void {
    const loop = frame.loop!
    this.cancelNodes(frame)
    this.deps.rows.endIteration(frame, { status: 'failed', error })
    this.ended(frame)
    if (loop.state.on_item_error === 'continue') return
    const { index } = frame.iteration!
    const [code, what] = isRepeat(loop) ? ['turn_failed', 'Turn'] : ['item_failed', 'Item']
    const message = `${what} ${index} of ${loop.id} failed: ${error.message}`.slice(0, 2_000)
    this.failLoop(loop, { code, message, details: { index, path: frame.path, error } })
  }

  private async advanceOne(loop: OpenLoop): Promise<void> {
    if (isRepeat(loop)) return this.advanceTurns(loop)
    const { rows, limits, wake } = this.deps
    const { state, open } = loop
    const hasRoom = () =>
      open.size === 0 ||
      (rows.frames.size <= limits.openItems && this.openNodes() + this.bodyOf(loop) <= limits.openNodes)
    while (state.next < state.count && open.size < state.concurrency && hasRoom()) {
      const item = await this.nextItem(loop)
      if (item) wake(rows.addIteration(loop, item))
      else rows.endItems(loop)
    }
    if (open.size === 0) await this.complete(loop)
  }

  /** The nodes that the open items may have. Those of a loop in an item count twice once it has opened an item. */
  private openNodes(): number {
    let sum = 0
    for (const { loop } of this.deps.rows.frames.values()) if (loop) sum += this.bodyOf(loop)
    return sum
  }

  private bodyOf({ id }: OpenLoop): number {
    return this.bodies.get(id) ?? 0
  }

  private async advanceTurns(loop: OpenLoop): Promise<void> {
    const { rows, wake } = this.deps
    const { state, open } = loop
    const { row } = this.nodeOf(loop)
    if (open.size > 0 || row.wait_until !== null) return
    if (this.met.has(loop)) return this.complete(loop, 'until')
    const turn = await this.nextTurn(loop)
    if (turn.index < state.count) wake(rows.addIteration(loop, turn))
    else if ((row.input as NodeTurns).on_limit === 'stop') await this.complete(loop, 'limit')
    else
      this.failLoop(loop, {
        code: 'turn_limit',
        message: `until did not hold in ${turn.index} turns: raise max_turns of ${loop.id}, or mend its condition.`,
        details: { turns: turn.index },
      })
  }

  private async nextTurn(loop: OpenLoop): Promise<LoopItem> {
    const [known] = this.items.get(loop) ?? []
    return known ?? this.deps.host.turn(loop.state, loop.state.next)
  }

  private async nextItem(loop: OpenLoop): Promise<LoopItem | undefined> {
    const { host, limits } = this.deps
    const known = this.items.get(loop)
    const items = known?.length ? known : await host.items(loop.state, loop.state.next, limits.itemsPage)
    this.items.set(loop, items)
    return items.shift()
  }

  private async complete(loop: OpenLoop, endedBy?: 'until' | 'limit'): Promise<void> {
    const { rows, limits, fail, wake } = this.deps
    const { row, node } = this.nodeOf(loop)
    const { count, succeeded, failed } = loop.state
    if (this.isTooLarge(loop)) return this.failTooLarge(loop)
    const items = await this.collect(loop)
    const last = endedBy && (await this.nextTurn(loop)).item
    const results = endedBy && (items?.map((item) => item.output ?? null) ?? null)
    const all = endedBy && { turns: succeeded, ended_by: endedBy, last }
    const output = all ? { ...all, results } : { count, succeeded, failed, items }
    rows.endLoop(loop)
    wake(loop.within)
    try {
      row.output = capped(output, limits.valueBytes)
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      if (node.collects) {
        this.keep(loop)
        return fail(row, node, { code: error.code, message: error.message })
      }
      row.output = all ? { ...all, results: null } : { ...output, items: null }
    }
    rows.settle(row, 'completed', this.handle(node.id))
  }

  /** The results in the order of the list; null if they are too large and nothing reads them. */
  private async collect(loop: OpenLoop): Promise<ItemResult[] | null> {
    const { host, limits } = this.deps
    if (loop.state.bytes > limits.valueBytes) return null
    const all = [...(await host.results(loop.state.loop)), ...(this.results.get(loop) ?? [])]
    return all.sort((a, b) => a.index - b.index)
  }

  private outputOf(frame: Frame): unknown {
    const { config } = this.deps.program.nodes[frame.loop!.id]!
    if (Object.hasOwn(config, 'output')) return this.renderIn(frame, config.output)
    const done = [...frame.rows.values()].filter(({ status }) => status === 'completed')
    return done.at(-1)?.output ?? null
  }

  /** Whether a turn is the last one. */
  private isMet(frame: Frame): boolean {
    const { until } = this.deps.program.nodes[frame.loop!.id]!.config
    const value = this.renderIn(frame, until) ?? false
    if (typeof value === 'boolean') return value
    const shown = Array.isArray(value) ? 'a list' : isObject(value) ? 'a mapping' : `a ${typeof value}`
    throw new NodeError('invalid_config', `must be true or false, and is ${shown}`)
  }

  /** Renders a text of a loop as in its body. */
  private renderIn(frame: Frame, value: unknown): unknown {
    const { facts, limits } = this.deps
    return renderAtEnd(value, scopeOf(facts, frame), limits.valueBytes)
  }

  private ended(frame: Frame): void {
    const { iteration, loop } = frame
    if (!iteration || !loop) return
    const { index, status, item, output, error } = iteration
    const result = { index, status, output, ...(error && { item, error }) }
    const results = this.results.get(loop) ?? []
    this.results.set(loop, results)
    results.push(result)
    const characters = JSON.stringify(result).length + 1
    loop.state.bytes += characters
    this.deps.rows.characters += characters
    this.due.add(loop)
    if (this.isTooLarge(loop)) this.failTooLarge(loop)
  }

  /** Whether the results, which a node reads, are larger than a value may be. */
  private isTooLarge(loop: OpenLoop): boolean {
    return loop.state.bytes > this.deps.limits.valueBytes && this.nodeOf(loop).node.collects === true
  }

  private failTooLarge(loop: OpenLoop): void {
    const { valueBytes } = this.deps.limits
    const what = isRepeat(loop) ? 'turns' : 'items'
    const message = `The results of the ${what} are larger than ${valueBytes / 1024} KiB together: make them smaller by \`output\` in the config of ${loop.id}.`
    this.failLoop(loop, { code: 'output_too_large', message })
  }

  private failLoop(loop: OpenLoop, error: RunError): void {
    const { rows, fail, wake } = this.deps
    if (!rows.loops.has(loop.state.loop)) return
    this.keep(loop)
    this.cancelItems(loop)
    const { row, node } = this.nodeOf(loop)
    wake(loop.within)
    fail(row, node, error)
  }

  private cancelItems(loop: OpenLoop): void {
    const { rows } = this.deps
    for (const frame of loop.open.values()) {
      this.cancelNodes(frame)
      rows.endIteration(frame, { status: 'cancelled' })
    }
    rows.endLoop(loop)
  }

  private cancelNodes(frame: Frame): void {
    const { rows, program, commands } = this.deps
    for (const loop of [...rows.loops.values()]) if (loop.within === frame) this.cancelItems(loop)
    for (const row of rows.open([frame])) {
      const waits = row.status === 'waiting' ? row.wait_until !== null : row.status === 'running'
      if (waits && (row.wait_until || program.nodes[row.node_id]?.effect === 'external'))
        commands.push({ type: 'cancel', ...at(row) })
      if (isOpen(row)) rows.settle(row, 'cancelled', null)
      // It ended, but the workflow was not told.
      else rows.settle(row, row.status, row.handle)
    }
  }

  private nodeOf({ within, id }: OpenLoop): { row: RunNode; node: ProgramNode } {
    return { row: within.rows.get(id)!, node: this.deps.program.nodes[id]! }
  }

  private handle(id: string): string {
    const { type, config } = this.deps.program.nodes[id]!
    return firstHandle(typeOf(type), config)
  }
}

/** Turns run one after the other, and the first that fails ends them. */
const ONE_BY_ONE = { concurrency: 1, on_item_error: 'stop' } as const

/** By the id of a loop: the nodes of its body, with those of loops in it, of which each item gets one item at least. */
function bodySizes({ nodes }: Program): Map<string, number> {
  const sizes = new Map<string, number>()
  for (const node of Object.values(nodes))
    for (let id = node.loop; id !== undefined; id = nodes[id]?.loop) sizes.set(id, (sizes.get(id) ?? 0) + 1)
  return sizes
}
