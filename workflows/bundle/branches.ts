import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  proxyActivities,
  sleep,
  workflowInfo,
} from '@temporalio/workflow'
import {
  type Command,
  type Happened,
  type NodeAt,
  type NodeCommand,
  type NodeInput,
  poolTaskQueue,
  type RunInput,
  type SegmentAnswer,
} from './protocol.ts'
import { summaryOf } from './summary.ts'

/** What the workflow waits for, for one node. */
interface Branch {
  title: string
  /** Whether it waits for an activity. */
  calls: boolean
  /** The scope of a branch that can end before the run: a wait that gets its answer, or a node in an item of a loop. */
  scope: CancellationScope | undefined
}

/**
 * The timers and activities that a run waits for, besides its loop of segments: one branch for each open node, and the
 * time limit. What ends, also with a failure, goes into the inbox.
 */
export class Branches {
  /** Created on first use: a scope has promises, which WORKFLOW_STACK_TRACES makes expensive. */
  private scope: CancellationScope | undefined
  private timeLimit: CancellationScope | undefined
  private readonly open = new Map<string, Branch>()
  /** While the workflow catches up: the branches that the rows want, which may come in several answers. */
  private wanted: Set<string> | undefined
  private readonly input: RunInput
  private readonly inbox: Happened[]

  constructor(input: RunInput, inbox: Happened[]) {
    this.input = input
    this.inbox = inbox
  }

  get size(): number {
    return this.open.size
  }

  /** Whether an activity is among them. */
  get calls(): boolean {
    return [...this.open.values()].some((branch) => branch.calls)
  }

  /** Forgets the branches whose end a segment has applied. */
  settle(happened: Happened[]): void {
    for (const one of happened) if ('node' in one) this.open.delete(keyOf(one))
  }

  /** From now on the commands say all that the rows want: after the last part, other branches are cancelled. */
  catchUp(): void {
    this.wanted = new Set()
  }

  /** Sets the time limit of the run, or replaces it. */
  limitTime({ timeout_ms, replaces_timeout }: SegmentAnswer): void {
    if (this.input.engine >= 4 && replaces_timeout) {
      this.timeLimit?.cancel()
      this.timeLimit = undefined
    }
    if (timeout_ms === undefined || this.timeLimit) return
    this.timeLimit = new CancellationScope({ parent: this.parent(), cancellable: true })
    const summary = 'Time limit of the workflow'
    this.launch(this.timeLimit, { type: 'timeout' }, () => sleep(timeout_ms, { summary }))
  }

  /** Begins or cancels a branch. Commands may be issued again: a branch that is still open is not started twice. */
  apply(command: NodeCommand): void {
    const key = keyOf(command)
    this.wanted?.add(key)
    if (command.type === 'cancel') {
      this.open.get(key)?.scope?.cancel()
      this.open.delete(key)
    } else if (!this.open.has(key)) this.open.set(key, this.begin(command))
  }

  /** After the last part of the commands: cancels the branches for which the rows no longer wait. */
  dropUnwanted(): void {
    if (!this.wanted) return
    for (const [key, branch] of this.open) {
      if (this.wanted.has(key)) continue
      branch.scope?.cancel()
      this.open.delete(key)
    }
    this.wanted = undefined
  }

  /** What happened, for the timeline of the Temporal UI. */
  titleOf(one: Happened): string {
    return 'node' in one ? `after ${this.open.get(keyOf(one))?.title ?? one.node}` : one.type
  }

  cancelAll(): void {
    this.scope?.cancel()
  }

  private parent(): CancellationScope {
    this.scope ??= new CancellationScope()
    return this.scope
  }

  private begin(command: Exclude<NodeCommand, { type: 'cancel' }>): Branch {
    const { type, title } = command
    const { organization_id, run_id } = this.input
    const node = nodeOf(command)
    const alone = type === 'timer' || command.path !== undefined || command.alone === true
    const own = alone ? new CancellationScope({ parent: this.parent(), cancellable: true }) : undefined
    const scope = own ?? this.parent()
    const branch: Branch = { title, calls: type === 'external', scope: own }
    if (type === 'timer')
      this.launch(scope, { type, ...node }, () => sleep(command.ms, { summary: summaryOf(title) }))
    else {
      const call = () => external(command, { organization_id, run_id, ...node })
      this.launch(scope, { type: 'settled', ...node }, () => {
        if (command.delay_ms === undefined) return call()
        branch.calls = false
        return sleep(command.delay_ms, { summary: summaryOf(title) }).then(() => {
          branch.calls = true
          return call()
        })
      })
    }
    return branch
  }

  /** Waits beside the loop, then puts the outcome into the inbox, unless the branch was cancelled. */
  private launch(scope: CancellationScope, then: Happened, wait: () => Promise<unknown>): void {
    scope.run(wait).then(
      () => this.inbox.push(then),
      (error: unknown) => {
        if (!scope.consideredCancelled) this.inbox.push(failure(then, error))
      },
    )
  }
}

const nodeOf = ({ node, path }: NodeAt): NodeAt => (path === undefined ? { node } : { node, path })
const keyOf = ({ node, path }: NodeAt) => (path === undefined ? node : `${path}/${node}`)

function failure(then: Happened, error: unknown): Happened {
  if (!('node' in then)) return then
  const cause = error instanceof ActivityFailure ? error.cause : error
  const code = cause instanceof ApplicationFailure && cause.type ? cause.type : 'activity_failed'
  const message = cause instanceof Error ? cause.message : 'The activity failed.'
  return { type: 'failed', ...nodeOf(then), code, message: message.slice(0, 1_000) }
}

/** How long an attempt keeps a result that it cannot record because the database is unavailable. */
const RECORDING_MS = 24 * 60 * 60 * 1_000

function external(command: Command & { type: 'external' }, input: NodeInput): Promise<unknown> {
  const { retry, pool } = command
  const activities = proxyActivities<Record<string, (input: NodeInput) => Promise<unknown>>>({
    // Without a limit of its time in the queue: where nobody polls it, the run waits.
    ...(pool !== undefined && { taskQueue: poolTaskQueue(workflowInfo().taskQueue, pool) }),
    // The activity enforces the node's timeout itself; the heartbeat finds an activity that hangs.
    startToCloseTimeout: command.timeout_ms + RECORDING_MS,
    heartbeatTimeout: '10 seconds',
    retry: {
      // Without a maximum: the row counts the attempts. An attempt that is lost with its worker does not count.
      initialInterval: Math.max(1, retry.initial_interval_ms),
      backoffCoefficient: Math.max(1, retry.backoff),
      maximumInterval: Math.max(1, retry.initial_interval_ms, retry.max_interval_ms),
    },
    summary: summaryOf(command.title),
  })
  return activities[command.node_type]!(input)
}
