import {
  type Command,
  type Happened,
  NOT_MADE,
  type SegmentAnswer,
  type SegmentInput,
  WAITS_FOR_PERSON,
} from '../bundle/protocol.ts'
import type { Program, ProgramNode } from '../language/definition.ts'
import type { Scope } from '../language/expressions/liquid.ts'
import { MAIL_TURN, NodeError } from '../language/node-error.ts'
import type { NodeEnd } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Limits } from '../shared/run-limits.ts'
import type { EndStatus } from '../shared/statuses.ts'
import { runDetails } from './details.ts'
import { firstHandle, type Outcome, typeOf, type Waits } from './execute.ts'
import { type Frame, splitKey } from './frames.ts'
import { type LoopHost, Loops } from './loops.ts'
import { at, commandOf, endCommand, reissue, timeLeft, usablePool } from './open-nodes.ts'
import { renderOutputs } from './outputs.ts'
import { type LoopChange, Rows } from './rows.ts'
import type {
  AnsweredNode,
  ChildEnd,
  RunControl,
  RunError,
  RunFacts,
  RunIteration,
  RunNode,
  RunState,
} from './run-state.ts'
import { scopeOf } from './scope.ts'
import { errorHandle, step } from './step.ts'
import { capped } from './storable.ts'
import { evaluateWhen } from './when.ts'

/** The dependencies of a segment. */
export interface SegmentHost {
  /** Issues the commands of all open nodes again: the workflow may wait for other nodes than the rows say. */
  reissue?: boolean
  /** The workflow does not know the last segments, because Temporal was restored to an earlier moment. */
  behind?: boolean
  /** Why the run may not begin; absent if it may, or has begun. */
  refusal?: RunError | undefined
  /** A pause was requested: no node is started, and the run is paused once no attempt is in progress. */
  hold?: boolean
  /** The child runs that have ended, by the key of the node that waits for them. */
  children?: ReadonlyMap<string, ChildEnd>
  /** The answers that waiting nodes have got, and the waits that have expired. */
  answers?: readonly AnsweredNode[]
  /**
   * Runs one pure, read or write node. `path` is that of its frame. `later`: the next segment must begin with it, because
   * it needs a computation that is made before the transaction.
   */
  runNode(node: ProgramNode, scope: Scope, path: string): Promise<Outcome | 'later'>
  loops: LoopHost
  /** The time, in milliseconds since the epoch. */
  clock(): number
  limits: Limits
  /** The run in the API, for its details in the Temporal UI. */
  runUrl?: string | undefined
}

export interface SegmentResult {
  answer: SegmentAnswer
  /** The rows that are new or changed. */
  nodes: RunNode[]
  loops: LoopChange[]
  iterations: RunIteration[]
  /** The waits that nodes began in this segment, except for times. */
  waits: NewWait[]
  /** How the run ended, if it did. */
  end: End | undefined
  /** Whether it is paused: the workflow ends. */
  paused: boolean
  /** The end of the first timed wait (ISO 8601; `infinity` without one); null if a node runs or is ready. */
  sleepsUntil: string | null
  /** Whether all nodes that run do so in worker pools: no other worker has work for it. */
  inPool: boolean
  /** The characters of the data that the nodes have written. */
  characters: number
}

/** A wait for a child run or an answer. */
export type NewWait = Pick<RunNode, 'path' | 'node_id'> & Exclude<Waits, { until: Date }>

/** More than it takes to continue a workflow as new. */
const SOON_MS = 10_000

/** Sorts after every time in ISO 8601. */
const NEVER = 'infinity'

/** When the mail of a node, which waits for its turn, is due; null for any other node. */
const turnOf = ({ status, error, next_attempt_at }: RunNode): string | null =>
  status === 'running' && error?.code === MAIL_TURN ? (next_attempt_at ?? null) : null

type RunSoFar = Omit<RunFacts, 'run'> & { run: RunFacts['run'] & Pick<RunControl, 'data_bytes'> } & Pick<
    RunState,
    'nodes'
  > &
  Partial<Pick<RunState, 'loops' | 'iterations'>>
type End = { status: EndStatus; outputs: unknown; error: RunError | null }

/**
 * Runs one segment: applies the outcomes in `happened`, then runs every light node that is ready until the run must
 * wait, has ended, or has reached a limit of the segment. Works in memory, except for the effects of the nodes.
 */
export async function runSegment(
  program: Program,
  state: RunSoFar,
  input: SegmentInput,
  host: SegmentHost,
): Promise<SegmentResult> {
  const segment = new Segment(program, state, input, host)
  await segment.perform()
  return segment.result()
}

/** The output of a node whose child run has ended, and its error if that run did not complete. */
export function resultOfChild({ workflow_name, ...child }: ChildEnd): { output: unknown; error?: RunError } {
  const { run_id, workflow_id, status, outputs, error } = child
  const output = { run_id, workflow_id, status, outputs }
  if (status === 'completed') return { output }
  const reason = error ? `: ${error.message}` : '.'
  const message = `The run of ${workflow_name} is ${status}${reason}`.slice(0, 2_000)
  return { output, error: { code: 'child_run_failed', message, details: { run_id, status, error } } }
}

class Segment {
  private readonly rows: Rows
  private readonly loops: Loops
  /** The frames that may have a ready node. */
  private readonly awake: Set<Frame>
  /** The frames whose ready nodes are calls, of which too many are in progress. */
  private readonly held = new Set<Frame>()
  /** The calls that may start. */
  private room = 0
  private readonly commands: Command[] = []
  /** The length of the commands of this segment's nodes as JSON. */
  private commandCharacters = 0
  private readonly waits: SegmentResult['waits'] = []
  private end: End | undefined
  /** Whether the next segment must begin with a node that was left to it. */
  private isLeft = false
  private paused = false
  private timeLeft: number | undefined
  /** Whether `timeLeft` is known although it may differ from what the workflow waits for. */
  private knowsTimeLeft = false
  private readonly program: Program
  private readonly state: RunSoFar
  private readonly input: SegmentInput
  private readonly host: SegmentHost

  constructor(program: Program, state: RunSoFar, input: SegmentInput, host: SegmentHost) {
    this.program = program
    this.state = state
    this.input = input
    this.host = host
    this.rows = new Rows(state, input.segment, host.clock)
    this.awake = new Set(this.rows.frames.values())
    this.loops = new Loops({
      program,
      rows: this.rows,
      facts: state,
      limits: host.limits,
      host: host.loops,
      commands: this.commands,
      fail: (row, node, error) => this.fail(row, node, error),
      wake: (frame) => this.awake.add(frame),
      wait: (row, node) => this.wait(row, node),
      clock: host.clock,
    })
  }

  async perform(): Promise<void> {
    for (const one of this.input.happened) this.apply(one)
    if (this.host.refusal) this.finish('failed', this.host.refusal)
    this.requireTotal()
    for (const [key, child] of this.host.children ?? []) if (!this.end) this.endChild(key, child)
    for (const answered of this.host.answers ?? []) if (!this.end) this.endAnswered(answered)
    if (this.host.hold && !this.end) {
      this.paused = !this.rows.open().some((row) => row.status === 'running' && row.attempt_token != null)
      return
    }
    const { clock, limits } = this.host
    if (!this.end && !this.reissue()) return
    this.room = this.roomForCalls()
    const until = clock() + limits.segmentMs
    for (let count = 0; !this.end && !this.isLeft; ) {
      await this.loops.advance()
      const [frame] = this.awake
      if (this.end) return
      if (!frame) {
        if (!this.wakeHeld()) return
        continue
      }
      const next = this.next(frame)
      if (next === 'held') this.hold(frame)
      else if (!next) this.pause(frame)
      else if (this.input.drain) return
      else if (
        count >= limits.segmentNodes ||
        this.rows.characters > limits.segmentCharacters ||
        this.commandCharacters > limits.commandCharacters ||
        clock() > until
      ) {
        this.commands.push({ type: 'continue' })
        return
      } else {
        count += 1
        await this.start(frame, next)
        this.requireTotal()
      }
    }
  }

  /** The next node of a frame that may start. `held`: the ready ones are calls, of which too many are in progress. */
  private next(frame: Frame): ProgramNode | 'held' | undefined {
    // The frame may have ended since it was awakened.
    if (!this.rows.frames.has(frame.path)) return undefined
    const { ready, skipped } = step(this.program, this.rows.states(frame), frame.loop?.id)
    for (const id of skipped) this.rows.settle(this.rows.add(frame, this.program.nodes[id]!), 'skipped', null)
    const nodes = ready.map((id) => this.program.nodes[id]!)
    const next = this.room > 0 ? nodes[0] : nodes.find(({ effect }) => effect !== 'external')
    return next ?? (nodes.length > 0 ? 'held' : undefined)
  }

  /** Leaves a frame until another call ends. */
  private hold(frame: Frame): void {
    this.awake.delete(frame)
    this.held.add(frame)
  }

  /** Wakes the frames whose calls wait, if this segment has ended others: no later segment would. */
  private wakeHeld(): boolean {
    if (this.held.size === 0) return false
    this.room = this.roomForCalls()
    if (this.room <= 0) return false
    for (const frame of this.held) this.awake.add(frame)
    this.held.clear()
    return true
  }

  private roomForCalls(): number {
    return this.host.limits.openCalls - this.calls().length
  }

  /** The calls that have not ended. */
  private calls(): RunNode[] {
    const isCall = ({ node_id }: RunNode) => this.program.nodes[node_id]?.effect === 'external'
    return this.rows.open().filter((row) => row.status === 'running' && isCall(row))
  }

  /** Whether a call is in progress, or its next attempt begins soon. */
  private isCalling(): boolean {
    const soon = this.host.clock() + SOON_MS
    return this.calls().some(({ next_attempt_at: next }) => !next || Date.parse(next) < soon)
  }

  /** Puts a frame without a ready node to sleep, and ends it if it has no open node either. */
  private pause(frame: Frame): void {
    this.awake.delete(frame)
    if (!this.rows.frames.has(frame.path) || this.rows.open([frame]).length > 0) return
    if (frame.loop) this.loops.endItem(frame)
    else this.complete()
  }

  result(): SegmentResult {
    const { end, paused, rows, waits } = this
    if (end) this.rows.cancel()
    const timeout = this.input.segment === 0 ? this.program.settings.timeout_ms : this.timeLeft
    const answer: SegmentAnswer = {
      commands: end
        ? [endCommand(end.status, end.error)]
        : paused
          ? [endCommand('paused', null)]
          : this.commands,
      nodes: rows.ran.slice(0, 100),
      details: this.details(),
      ...(timeout === undefined || end ? {} : { timeout_ms: timeout }),
      ...(this.input.drain && this.isCalling() ? { busy: true } : {}),
      ...this.personState(),
      ...this.migration(),
    }
    return {
      answer,
      waits,
      end,
      paused,
      nodes: [...rows.changed],
      loops: [...rows.changedLoops.values()],
      iterations: [...rows.changedIterations],
      sleepsUntil: end || paused ? null : this.sleepsUntil(),
      inPool: !end && !paused && this.inPool(),
      characters: rows.characters,
    }
  }

  /** Whether the run waits for a person, if that has changed or the workflow may not know it. */
  private personState(): Pick<SegmentAnswer, 'state'> {
    const asks = (row: RunNode) => row.status === 'waiting' && findNodeType(row.node_type)?.asksPerson
    const before = this.state.nodes.some(asks)
    const now = !this.end && this.rows.open().some(asks)
    if (now) return before && !this.host.reissue ? {} : { state: WAITS_FOR_PERSON }
    return before || this.host.behind ? { state: null } : {}
  }

  private sleepsUntil(): string | null {
    const open = this.rows.open()
    const isAwake = open.some((row) => row.status !== 'waiting' && turnOf(row) === null)
    if (isAwake || this.commands.some(({ type }) => type === 'continue')) return null
    return open.reduce((first, row) => {
      const until = turnOf(row) ?? row.wait_until
      return until !== null && until < first ? until : first
    }, NEVER)
  }

  private inPool(): boolean {
    const running = this.rows.open().filter(({ status }) => status !== 'waiting')
    if (running.length === 0 || this.commands.some(({ type }) => type === 'continue')) return false
    return running.every(({ node_id }) => {
      const node = this.program.nodes[node_id]
      return node !== undefined && usablePool(node, this.state.pools) !== undefined
    })
  }

  /** Issues the commands of the open nodes again, if the workflow needs them. @returns whether these are the last. */
  private reissue(): boolean {
    const { reissue: all, clock, limits } = this.host
    const after = all ? undefined : this.input.after
    if (!all && after === undefined) return true
    const part = { characters: limits.commandCharacters, ...(after !== undefined && { after }) }
    const { run, pools } = this.state
    const again = reissue(this.program, run, this.rows.open(), clock(), part, pools)
    this.commands.push(...again.commands)
    this.timeLeft = again.timeout_ms
    this.knowsTimeLeft = again.after === undefined
    for (const one of again.happened) this.apply(one)
    if (again.after === undefined) return true
    this.commands.push({ type: 'continue', after: again.after })
    return false
  }

  private apply(one: Happened): void {
    if (one.type === 'cancelled')
      this.finish('cancelled', { code: 'cancelled', message: 'The run was cancelled.' })
    else if (one.type === 'refresh') return
    else if (one.type === 'timeout' && this.isEarly()) return
    else if (one.type === 'timeout')
      this.finish('failed', { code: 'timeout', message: 'The run exceeded the timeout of its workflow.' })
    else {
      const row = this.rows.frames.get(one.path ?? '')?.rows.get(one.node)
      const node = this.program.nodes[one.node]
      if (row && node && row.settled_segment === null) this.endWait(row, node, one)
    }
  }

  /** Whether the time limit that was over is that of a version which the run no longer has. */
  private isEarly(): boolean {
    if (!this.isMigrated()) return false
    this.knowsTimeLeft = true
    const left = timeLeft(this.program, this.state.run, this.host.clock())
    this.timeLeft = left
    return left === undefined || left > 0
  }

  private isMigrated(): boolean {
    return this.state.run.migrations != null
  }

  /** What the workflow must know of a run that has another version than at its start, whenever it may not know it. */
  private migration(): Pick<SegmentAnswer, 'version' | 'expected_by' | 'replaces_timeout'> {
    const isNews = this.input.segment === 0 || this.knowsTimeLeft
    if (!this.isMigrated() || !isNews) return {}
    const { workflow_version, expected_by = null } = this.state.run
    return { version: workflow_version!, expected_by, ...(!this.end && { replaces_timeout: true }) }
  }

  private endWait(row: RunNode, node: ProgramNode, one: Happened & { node: string }): void {
    if (one.type === 'timer' && typeOf(node.type).answered) return
    if (one.type === 'timer' && typeOf(node.type).repeats) this.rows.setPause(row, null)
    else if (one.type === 'timer')
      this.rows.settle(row, 'completed', firstHandle(typeOf(node.type), node.config))
    else if (row.status === 'completed') {
      this.rows.characters += charactersOf(row)
      this.rows.settle(row, 'completed', row.handle)
    } else if (row.status === 'running' && isToRepeat(one)) {
      if (!this.host.reissue) this.wait(row, node)
    } else {
      const lost = { code: 'activity_failed', message: 'The activity ended without a result.' }
      const reported = one.type === 'failed' ? { code: one.code, message: one.message } : lost
      this.fail(row, node, row.error ?? reported)
    }
  }

  private endChild(key: string, child: ChildEnd): void {
    const { path, id } = splitKey(key)
    const row = this.rows.frames.get(path)?.rows.get(id)
    const node = this.program.nodes[id]
    if (!row || !node || row.settled_segment !== null || row.status !== 'waiting') return
    const { output, error } = resultOfChild(child)
    row.output = output
    if (error) this.fail(row, node, error)
    else this.rows.settle(row, 'completed', firstHandle(typeOf(node.type), node.config))
  }

  private endAnswered({ path, node_id, ...answer }: AnsweredNode): void {
    const row = this.rows.frames.get(path)?.rows.get(node_id)
    const node = this.program.nodes[node_id]
    if (!row || !node || row.settled_segment !== null || row.status !== 'waiting') return
    if (row.wait_until !== null) this.commands.push({ type: 'cancel', ...at(row) })
    try {
      const { output, handle } = typeOf(node.type).answered!(answer)
      row.output = capped(output, this.host.limits.valueBytes)
      this.rows.settle(row, 'completed', handle)
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      this.fail(row, node, { code: error.code, message: error.message })
    }
  }

  private async start(frame: Frame, node: ProgramNode): Promise<void> {
    const row = this.rows.add(frame, node)
    const scope = scopeOf(this.state, frame)
    if (node.when !== undefined) {
      const holds = evaluateWhen(node.when, scope)
      if (holds instanceof NodeError)
        return this.fail(row, node, { code: holds.code, message: holds.message })
      // The flow continues after a node whose `when` is false.
      if (!holds) return this.rows.settle(row, 'skipped', firstHandle(typeOf(node.type), node.config))
    }
    if (node.effect === 'external') {
      this.room -= 1
      this.wait(row, node)
      this.rows.note(row, 'started')
      return
    }
    const outcome = await this.host.runNode(node, scope, frame.path)
    if (outcome !== 'later') return this.applyOutcome(row, node, outcome)
    this.rows.remove(frame, row)
    this.commands.push({ type: 'continue' })
    this.isLeft = true
  }

  private async applyOutcome(row: RunNode, node: ProgramNode, outcome: Outcome): Promise<void> {
    this.rows.characters += outcome.characters ?? 0
    row.input = outcome.input
    if ('output' in outcome) row.output = outcome.output
    if (outcome.status === 'failed') this.fail(row, node, outcome.error)
    else if (outcome.status === 'completed') this.rows.settle(row, 'completed', outcome.handle)
    else if (outcome.status === 'ended') this.stop(row, outcome.end)
    else if (outcome.status === 'looping') await this.loops.begin(row, this.frameOf(row), outcome.loop)
    else {
      row.status = 'waiting'
      const { waits } = outcome
      if ('until' in waits) row.wait_until = waits.until.toISOString()
      else this.waits.push({ path: row.path, node_id: node.id, ...waits })
      if ('for' in waits) row.wait_until = waits.for.expires_at?.toISOString() ?? null
      this.wait(row, node)
      this.rows.note(row, 'waiting')
    }
  }

  private wait(row: RunNode, node: ProgramNode): void {
    const command = commandOf(node, row, this.host.clock(), this.state.pools)
    if (!command) return
    this.commands.push(command)
    this.commandCharacters += JSON.stringify(command).length
  }

  private stop(row: RunNode, { status, message, outputs }: NodeEnd): void {
    this.rows.settle(row, 'completed', null)
    if (status === 'failed') {
      const reason = message ?? 'A stop node ended the run as failed.'
      this.finish('failed', { code: 'stopped', message: reason, node_id: row.node_id }, outputs)
    } else if (outputs) this.end ??= { status, outputs, error: null }
    else this.complete()
  }

  private fail(row: RunNode, node: ProgramNode, error: RunError): void {
    row.error = error
    const handle = errorHandle(node, firstHandle(typeOf(node.type), node.config))
    this.rows.settle(row, 'failed', handle)
    if (handle !== null) return
    const frame = this.frameOf(row)
    const reason = { ...error, node_id: node.id }
    if (frame.loop) this.loops.failItem(frame, reason)
    else this.finish('failed', reason)
  }

  /** Ends the run if its nodes have written more than one run may. */
  private requireTotal(): void {
    const { totalBytes } = this.host.limits
    if (this.end || (this.state.run.data_bytes ?? 0) + this.rows.characters <= totalBytes) return
    const message = `The nodes of the run have written more than ${Math.floor(totalBytes / 1024 / 1024)} MiB, all items of its loops included: the plan allows no more for one run.`
    this.finish('failed', { code: 'run_data_exceeded', message })
  }

  private frameOf(row: RunNode): Frame {
    return this.rows.frames.get(row.path)!
  }

  private complete(): void {
    try {
      const { root } = this.rows
      const statusOf = (id: string) => root.rows.get(id)?.status
      const scope = scopeOf(this.state, root)
      const outputs = renderOutputs(this.program.outputs, statusOf, scope, this.host.limits.valueBytes)
      this.end ??= { status: 'completed', outputs, error: null }
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      this.finish('failed', { code: error.code, message: `outputs: ${error.message}` })
    }
  }

  private finish(status: 'failed' | 'cancelled', error: RunError, outputs?: Record<string, unknown>): void {
    this.end ??= { status, outputs, error }
  }

  private details(): string {
    return runDetails({
      nodes: this.rows.progress(),
      total: Object.values(this.program.nodes).filter(({ loop }) => loop === undefined).length,
      end: this.end ?? (this.paused ? { status: 'paused', error: null } : undefined),
      url: this.host.runUrl,
      version: this.isMigrated() ? this.state.run.workflow_version : null,
      limit: this.host.limits.detailsCharacters,
    })
  }
}

/** The characters of what a call has written in its row. */
const charactersOf = ({ input, output }: RunNode): number =>
  JSON.stringify(input).length + JSON.stringify(output).length
/**
 * Whether an activity that has ended must run again. One that has settled wrote its result before, so the database was
 * restored to an earlier moment.
 */
const isToRepeat = (one: Happened): boolean =>
  one.type === 'settled' ||
  (one.type === 'failed' && (Object.values(NOT_MADE) as string[]).includes(one.code))
