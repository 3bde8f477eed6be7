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
import { NodeError } from '../language/node-error.ts'
import type { NodeEnd } from '../nodes/define.ts'
import { findNodeType } from '../nodes/index.ts'
import type { Limits } from '../shared/run-limits.ts'
import { resultOfChild } from './child-result.ts'
import { Cleanup, type End } from './cleanup.ts'
import { runDetails } from './details.ts'
import { firstHandle, type Outcome, typeOf, type Waits } from './execute.ts'
import { type Frame, splitKey } from './frames.ts'
import { runsInPools, sleepsUntil } from './idle.ts'
import { type LoopHost, Loops } from './loops.ts'
import { OpenCalls } from './open-calls.ts'
import { at, commandOf, endCommand, reissue } from './open-nodes.ts'
import { renderAtEnd } from './outputs.ts'
import { type LoopChange, Rows } from './rows.ts'
import type {
  AnsweredNode,
  ChildEnd,
  Ending,
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
import { TimeLimit } from './time-limit.ts'
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
  /** Its outcome, if this segment has decided it and begun the cleanup. */
  ending: Ending | undefined
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

type RunSoFar = Omit<RunFacts, 'run'> & {
  run: RunFacts['run'] & Pick<RunControl, 'data_bytes'> & Partial<Pick<RunControl, 'cancel_reason'>>
} & Pick<RunState, 'nodes'> &
  Partial<Pick<RunState, 'loops' | 'iterations'>>

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

class Segment {
  private readonly rows: Rows
  private readonly loops: Loops
  /** The frames that may have a ready node. */
  private readonly awake: Set<Frame>
  private readonly calls: OpenCalls
  private readonly time: TimeLimit
  private readonly commands: Command[] = []
  /** The bytes of the commands of this segment's nodes as JSON. */
  private commandBytes = 0
  private readonly waits: SegmentResult['waits'] = []
  private readonly cleanup: Cleanup
  private end: End | undefined
  /** The outcome, if this segment has begun the cleanup. */
  private begun: Ending | undefined
  /** Whether the next segment must begin with a node that was left to it. */
  private isLeft = false
  private paused = false
  private readonly program: Program
  private state: RunSoFar
  private readonly input: SegmentInput
  private readonly host: SegmentHost

  constructor(program: Program, state: RunSoFar, input: SegmentInput, host: SegmentHost) {
    this.program = program
    this.state = state
    this.input = input
    this.host = host
    this.rows = new Rows(state, input.segment, host.clock)
    this.awake = new Set(this.rows.frames.values())
    this.calls = new OpenCalls({ program, rows: this.rows, limit: host.limits.openCalls, clock: host.clock })
    this.time = new TimeLimit(program, state.run)
    this.cleanup = new Cleanup({ program, rows: this.rows, commands: this.commands })
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
    await this.advance()
    // A loop may have ended early in the last step.
    await this.loops.gather()
  }

  private async advance(): Promise<void> {
    for (const one of this.input.happened) this.apply(one)
    // Nothing has run.
    if (this.host.refusal) this.end ??= { status: 'failed', outputs: undefined, error: this.host.refusal }
    this.requireTotal()
    for (const [key, child] of this.host.children ?? []) if (!this.end) this.endChild(key, child)
    for (const answered of this.host.answers ?? []) if (!this.end) this.endAnswered(answered)
    if (this.ending && !this.end) this.cleanup.dropRetries()
    if (this.host.hold && !this.end) {
      this.paused = !this.rows.open().some((row) => row.status === 'running' && row.attempt_token != null)
      // A workflow that catches up cancels what the answers do not name: the calls in progress, for which the pause waits.
      if (!this.paused && (this.host.behind || this.input.after !== undefined)) this.reissue()
      return
    }
    const { clock, limits } = this.host
    if (!this.end && !this.reissue()) return
    this.calls.measure()
    const until = clock() + limits.segmentMs
    for (let count = 0; !this.end && !this.isLeft; ) {
      await this.loops.advance()
      const [frame] = this.awake
      if (this.end) return
      if (!frame) {
        const released = this.calls.release()
        if (released.length === 0) return
        for (const one of released) this.awake.add(one)
        continue
      }
      const next = this.next(frame)
      if (next === 'held') this.hold(frame)
      else if (!next) this.pause(frame)
      else if (this.input.drain) return
      else if (
        count >= limits.segmentNodes ||
        this.rows.characters > limits.segmentCharacters ||
        this.commandBytes > limits.commandBytes ||
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
    if (this.ending) {
      const next = this.cleanup.next(this.ending)
      return next && this.calls.firstOf([next])
    }
    const { ready, skipped } = step(this.program, this.rows.states(frame), frame.loop?.id)
    for (const id of skipped) this.rows.settle(this.rows.add(frame, this.program.nodes[id]!), 'skipped', null)
    return this.calls.firstOf(ready.map((id) => this.program.nodes[id]!))
  }

  /** Leaves a frame until another call ends. */
  private hold(frame: Frame): void {
    this.awake.delete(frame)
    this.calls.hold(frame)
  }

  /** Puts a frame without a ready node to sleep, and ends it if it has no open node either. */
  private pause(frame: Frame): void {
    this.awake.delete(frame)
    if (!this.rows.frames.has(frame.path) || this.rows.open([frame]).length > 0) return
    if (this.ending) this.end = this.cleanup.end(this.ending, false)
    else if (frame.loop) this.loops.endItem(frame)
    else this.complete()
  }

  result(): SegmentResult {
    const { end, paused, rows, waits } = this
    if (end) this.rows.cancel()
    const last = end
      ? endCommand(end.status, end.error)
      : paused
        ? endCommand('paused', null)
        : bytesOf(this.commands) > 2 * this.host.limits.commandBytes
          ? REISSUE
          : undefined
    const commands = last ? [last] : this.commands
    const continues = commands.some(({ type }) => type === 'continue')
    const answer: SegmentAnswer = {
      commands,
      ...(last === REISSUE && { segment: this.input.segment }),
      nodes: rows.ran.slice(0, 100),
      details: this.details(),
      ...(this.input.drain && this.calls.isCalling() ? { busy: true } : {}),
      ...this.personState(),
      ...this.time.answer({ isFirst: this.input.segment === 0, ended: end !== undefined }),
    }
    return {
      answer,
      waits,
      end,
      ending: this.begun,
      paused,
      nodes: [...rows.changed],
      loops: [...rows.changedLoops.values()],
      iterations: [...rows.changedIterations],
      sleepsUntil: end || paused || continues ? null : sleepsUntil(rows.open()),
      inPool: !end && !paused && !continues && runsInPools(this.program, rows.open(), this.state.pools),
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

  /** Issues the commands of the open nodes again, if the workflow needs them. @returns whether these are the last. */
  private reissue(): boolean {
    const { reissue: all, clock, limits } = this.host
    const after = all ? undefined : this.input.after
    if (!all && after === undefined) return true
    const part = { bytes: limits.commandBytes, ...(after !== undefined && { after }) }
    const { run, pools } = this.state
    const again = reissue(this.program, run, this.rows.open(), clock(), part, pools)
    this.commands.push(...again.commands)
    this.time.reissued(again.timeout_ms, again.after === undefined)
    for (const one of again.happened) this.apply(one)
    if (again.after === undefined) return true
    this.commands.push({ type: 'continue', after: again.after })
    return false
  }

  private apply(one: Happened): void {
    if (one.type === 'cancelled')
      this.finish('cancelled', {
        code: 'cancelled',
        message: this.state.run.cancel_reason ?? 'The run was cancelled.',
      })
    else if (one.type === 'refresh') return
    else if (one.type === 'timeout' && this.time.isEarly(this.host.clock())) return
    else if (one.type === 'timeout' && this.ending) this.end ??= this.cleanup.end(this.ending, true)
    else if (one.type === 'timeout')
      this.finish('failed', { code: 'timeout', message: 'The run exceeded the timeout of its workflow.' })
    else {
      const row = this.rows.frames.get(one.path ?? '')?.rows.get(one.node)
      const node = this.program.nodes[one.node]
      if (row && node && row.settled_segment === null) this.endWait(row, node, one)
    }
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
      this.calls.take()
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
    const { pools } = this.state
    const alone = this.program.cleanup !== undefined
    const command = commandOf(node, row, this.host.clock(), { pools, alone })
    if (!command) return
    this.commands.push(command)
    this.commandBytes += bytesOf(command)
  }

  private stop(row: RunNode, { status, message, outputs }: NodeEnd): void {
    this.rows.settle(row, 'completed', null)
    if (status === 'failed') {
      const reason = message ?? 'A stop node ended the run as failed.'
      this.finish('failed', { code: 'stopped', message: reason, node_id: row.node_id }, outputs)
    } else if (outputs) this.endAs({ status, outputs, error: null })
    else this.complete()
  }

  private fail(row: RunNode, node: ProgramNode, error: RunError): void {
    row.error = error
    const handle = errorHandle(node, firstHandle(typeOf(node.type), node.config))
    this.rows.settle(row, 'failed', handle)
    // The others run, and then the error of the run names it.
    if (handle !== null || node.role) return
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
      const scope = scopeOf(this.state, this.rows.root)
      const outputs = renderAtEnd(this.program.outputs, scope, this.host.limits.valueBytes)
      this.endAs({ status: 'completed', outputs, error: null })
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      this.finish('failed', { code: error.code, message: `outputs: ${error.message}` })
    }
  }

  private finish(status: 'failed' | 'cancelled', error: RunError, outputs?: Record<string, unknown>): void {
    this.endAs({ status, outputs, error })
  }

  /** Ends the run, or begins its cleanup. The first outcome counts. */
  private endAs(end: End): void {
    if (this.end || this.ending) return
    if (end.status !== 'completed') this.loops.keepAll()
    if (!this.cleanup.begin(end.status)) {
      this.end = end
      return
    }
    const { run } = this.state
    const now = this.host.clock()
    const at = new Date(now).toISOString()
    this.begun = { ...end, segment: this.input.segment, at, paused_ms: run.paused_ms ?? 0 }
    // Cleanup nodes read the outcome.
    this.state = { ...this.state, run: { ...run, ending: this.begun } }
    this.time.beginCleanup(this.state.run, now)
    this.awake.add(this.rows.root)
  }

  private get ending(): Ending | undefined {
    return this.state.run.ending ?? undefined
  }

  private details(): string {
    return runDetails({
      nodes: this.rows.progress(),
      total: Object.values(this.program.nodes).filter(({ loop, role }) => !loop && !role).length,
      ending: this.ending,
      end: this.end ?? (this.paused ? { status: 'paused', error: null } : undefined),
      url: this.host.runUrl,
      version: this.time.isMigrated ? this.state.run.workflow_version : null,
      limit: this.host.limits.detailsCharacters,
    })
  }
}

/**
 * Instead of the cancellations of thousands of nodes: the next segments issue the commands of all open nodes again, and
 * the workflow cancels what they do not name.
 */
const REISSUE: Command = { type: 'continue', after: '' }

const bytesOf = (commands: Command | Command[]): number => Buffer.byteLength(JSON.stringify(commands))

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
