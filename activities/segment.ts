import type { NewEvent } from '../db/events/outbox.ts'
import type { Plan, PlanNode } from '../workflows/definition/types.ts'
import { render } from '../workflows/expressions/liquid.ts'
import type { RunError, RunNode, RunState } from '../workflows/interpret/run-state.ts'
import type { EndStatus } from '../workflows/interpret/statuses.ts'
import { errorHandle, isOpen, type NodeState, type NodeStates, step } from '../workflows/interpret/step.ts'
import { NodeError } from '../workflows/nodes/define.ts'
import type { Command, Happened, SegmentAnswer, SegmentInput } from '../workflows/protocol.ts'
import { scopeOf } from './context.ts'
import { firstHandle, type Outcome, typeOf } from './execute.ts'
import { type LightNodeOptions, runLightNode } from './light-node.ts'
import { renderOutputs } from './outputs.ts'

/** A segment goes on in the next after so many nodes or milliseconds, so that it never holds locks for long. */
const MAX_NODES = 50
const MAX_MS = 500
/** Characters of what the Temporal UI shows. */
const MAX_DETAILS = 2_000

export type SegmentOptions = Omit<LightNodeOptions, 'now' | 'raise'>

type End = { status: EndStatus; outputs: unknown; error: RunError | null }

/** The work of one segment, in memory but for the nodes' own effects. `perform()` once, then `result()`. */
export class Segment {
  private readonly now = new Date()
  private readonly rows: Map<string, RunNode>
  private readonly changed = new Set<RunNode>()
  private readonly commands: Command[] = []
  private readonly ran: string[] = []
  private end: End | undefined
  private readonly plan: Plan
  private readonly state: RunState
  private readonly input: SegmentInput
  private readonly options: SegmentOptions
  private readonly events: NewEvent[] = []

  constructor(plan: Plan, input: SegmentInput, options: SegmentOptions) {
    this.plan = plan
    this.state = options.state
    this.input = input
    this.options = options
    this.rows = new Map(options.state.nodes.map((row) => [row.node_id, row]))
  }

  async perform(): Promise<void> {
    for (const one of this.input.happened) this.apply(one)
    const until = Date.now() + MAX_MS
    for (let count = 0; !this.end; count++) {
      const { ready, skipped } = step(this.plan, this.states())
      for (const id of skipped) this.settle(this.add(this.plan.nodes[id]!), 'skipped', null)
      const next = ready[0]
      if (next === undefined) break
      if (count >= MAX_NODES || Date.now() > until) {
        this.commands.push({ type: 'continue' })
        return
      }
      await this.start(this.plan.nodes[next]!)
    }
    if (!this.end && this.open().length === 0) this.complete()
  }

  result(): { answer: SegmentAnswer; nodes: RunNode[]; events: NewEvent[]; end: End | undefined } {
    const { end } = this
    if (end) for (const row of this.open()) if (isOpen(row)) this.settle(row, 'cancelled', null)
    const timeout = this.input.segment === 0 ? this.plan.settings.timeout_ms : undefined
    const answer: SegmentAnswer = {
      commands: end ? [{ type: 'end', status: end.status }] : this.commands,
      nodes: this.ran.slice(0, 100),
      details: this.details(),
      ...(timeout === undefined || end ? {} : { timeout_ms: timeout }),
    }
    return { answer, nodes: [...this.changed], events: this.events, end }
  }

  /** What the run still waits for: also an external node that has written its row, but whose end has not arrived. */
  private open(): RunNode[] {
    return [...this.rows.values()].filter((row) => row.settled_segment === null)
  }

  private states(): NodeStates {
    const states = new Map<string, NodeState>(this.rows)
    for (const row of this.open()) states.set(row.node_id, { status: 'running', handle: null })
    return states
  }

  private apply(one: Happened): void {
    if (one.type === 'cancelled')
      this.finish('cancelled', { code: 'cancelled', message: 'The run was cancelled.' })
    else if (one.type === 'timeout')
      this.finish('failed', { code: 'timeout', message: 'The run took longer than its workflow allows.' })
    else {
      const row = this.rows.get(one.node)
      const node = this.plan.nodes[one.node]
      if (row && node && row.settled_segment === null) this.arrive(row, node, one)
    }
  }

  private arrive(row: RunNode, node: PlanNode, one: Happened & { node: string }): void {
    if (one.type === 'timer') this.settle(row, 'completed', firstHandle(typeOf(node.type), node.config))
    else if (row.status === 'completed') this.settle(row, 'completed', row.handle)
    else {
      const lost = { code: 'activity_failed', message: 'The activity ended without a result.' }
      const reported = one.type === 'failed' ? { code: one.code, message: one.message } : lost
      this.fail(row, node, row.error ?? reported)
    }
  }

  private async start(node: PlanNode): Promise<void> {
    const row = this.add(node)
    const scope = scopeOf(this.state, this.rows.values())
    if (node.when !== undefined) {
      const wanted = this.truth(node, scope)
      // It is left out of the flow, which goes on behind it.
      if (wanted === false) return this.settle(row, 'skipped', firstHandle(typeOf(node.type), node.config))
      if (typeof wanted === 'object') return this.fail(row, node, wanted)
    }
    if (node.effect === 'external') {
      const { id, type, title, timeout_ms, retry } = node
      this.commands.push({ type: 'external', node: id, node_type: type, title, timeout_ms, retry })
      this.ran.push(`${id}: started`)
      return
    }
    const raise = (event: NewEvent) => void this.events.push(event)
    const outcome = await runLightNode({ ...this.options, now: this.now, raise }, node, scope)
    this.take(row, node, outcome)
  }

  private take(row: RunNode, node: PlanNode, outcome: Outcome): void {
    row.input = outcome.input
    if (outcome.status !== 'failed') row.output = outcome.output
    if (outcome.status === 'failed') this.fail(row, node, outcome.error)
    else if (outcome.status === 'completed') this.settle(row, 'completed', outcome.handle)
    else if (outcome.status === 'ended') this.stop(row, outcome.end)
    else {
      row.status = 'waiting'
      row.wait_until = outcome.wait_until.toISOString()
      const ms = Math.max(1, outcome.wait_until.getTime() - Date.now())
      this.commands.push({ type: 'timer', node: node.id, title: node.title, ms })
      this.ran.push(`${node.id}: waiting`)
    }
  }

  private stop(row: RunNode, end: { status: 'completed' | 'failed'; message?: string }): void {
    this.settle(row, 'completed', null)
    const message = end.message ?? 'The workflow stopped itself as failed.'
    if (end.status === 'completed') this.complete()
    else this.finish('failed', { code: 'stopped', message, node_id: row.node_id })
  }

  private fail(row: RunNode, node: PlanNode, error: RunError): void {
    row.error = error
    const handle = errorHandle(node, firstHandle(typeOf(node.type), node.config))
    this.settle(row, 'failed', handle)
    if (handle === null) this.finish('failed', { ...error, node_id: node.id })
  }

  private settle(row: RunNode, status: RunNode['status'], handle: string | null): void {
    row.status = status
    row.handle = handle
    row.settled_segment = this.input.segment
    row.ended_at ??= new Date().toISOString()
    this.changed.add(row)
    this.ran.push(`${row.node_id}: ${status}`)
  }

  private add(node: PlanNode): RunNode {
    const row: RunNode = {
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
      segment: this.input.segment,
      settled_segment: null,
      position: this.rows.size,
      started_at: new Date().toISOString(),
      ended_at: null,
    }
    this.rows.set(node.id, row)
    this.changed.add(row)
    return row
  }

  /** Whether `when` holds; or why it cannot be told. */
  private truth(node: PlanNode, scope: Record<string, unknown>): boolean | RunError {
    try {
      const value = render(node.when, scope)
      return !(value === false || value === null || value === '' || value === 'false')
    } catch (error) {
      if (error instanceof NodeError) return { code: error.code, message: error.message }
      throw error
    }
  }

  private complete(): void {
    try {
      const scope = scopeOf(this.state, this.rows.values())
      const outputs = renderOutputs(this.plan.outputs, this.rows, scope)
      this.end ??= { status: 'completed', outputs, error: null }
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      this.finish('failed', { code: error.code, message: `outputs: ${error.message}` })
    }
  }

  private finish(status: 'failed' | 'cancelled', error: RunError): void {
    this.end ??= { status, outputs: undefined, error }
  }

  /** It is in the history, so it stays short whatever the titles and messages are. */
  private details(): string {
    if (this.end) {
      const why = this.end.error ? `: ${this.end.error.message}` : ''
      return `**${this.end.status}**${why}`.slice(0, MAX_DETAILS)
    }
    const lines = this.open().map((row) => `- ${row.title} (${row.node_type}): ${row.status}`)
    const reached = `**running**, ${this.rows.size} of ${Object.keys(this.plan.nodes).length} nodes reached`
    return [reached, ...lines].join('\n').slice(0, MAX_DETAILS)
  }
}
