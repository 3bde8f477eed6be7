import type { SearchAttributeUpdatePair } from '@temporalio/common'
import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineSignal,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  TemporalFailure,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import { Branches } from './branches.ts'
import { PACE } from './pace.ts'
import {
  type Command,
  EXPECTED_BY_ATTRIBUTE,
  type Happened,
  IN_DATABASE,
  ORGANIZATION_ATTRIBUTE,
  REFRESH,
  RUN_WORKFLOW_VERSION,
  type RunInput,
  type SegmentAnswer,
  type SegmentInput,
  STATE_ATTRIBUTE,
} from './protocol.ts'
import { type Renewal, renewalOf } from './renewal.ts'
import { requireVersion } from './require-version.ts'
import { summaryOf } from './summary.ts'

/**
 * The workflow of a run: a durable loop. Each turn is one segment, one transaction of the local activity `advance`,
 * which runs every light node that is ready and returns what to wait for. What ends, also with a failure, goes into the
 * inbox. The workflow throws only at the end of a run that failed or was cancelled, after `advance` has recorded it.
 */
export function run(input: RunInput): Promise<{ status: RunResult }> {
  requireVersion(input.engine, RUN_WORKFLOW_VERSION)
  const inbox: Happened[] = [...(input.happened ?? [])]
  const root = CancellationScope.current()
  root.cancelRequested.catch(() => inbox.push({ type: 'cancelled' }))
  setHandler(defineSignal(REFRESH), () => {
    if (!inbox.some(({ type }) => type === 'refresh')) inbox.push({ type: 'refresh' })
  })
  return CancellationScope.nonCancellable(() => new RunLoop(input, inbox, root).perform())
}

/** The loop of `run`. What its fields say is determined by the history. */
class RunLoop {
  private readonly branches: Branches
  private readonly renewal: Renewal
  private segment: number
  /** Where the next segment continues to issue commands, which come in parts. */
  private after: string | undefined
  private pages = 0
  /** What the segment follows, for the timeline of the Temporal UI. */
  private ready: string
  private readonly input: RunInput
  private readonly inbox: Happened[]
  private readonly root: CancellationScope

  constructor(input: RunInput, inbox: Happened[], root: CancellationScope) {
    this.input = input
    this.inbox = inbox
    this.root = root
    this.branches = new Branches(input, inbox)
    this.renewal = renewalOf(input.engine, this.branches, workflowInfo)
    this.segment = input.resume?.segment ?? 0
    this.ready = input.starts_with
  }

  async perform(): Promise<{ status: RunResult }> {
    for (; ; this.segment++) {
      const happened = this.inbox.splice(0)
      const answer = await this.advance(happened)
      if (!answer) return renew(this.input, this.segment + 1, [...happened, ...this.inbox])
      this.show(answer)
      this.branches.settle(happened)
      if (answer.segment !== undefined) {
        this.segment = answer.segment
        this.branches.catchUp()
      }
      this.branches.limitTime(answer)
      const command = this.applyCommands(answer)
      if (command.end) {
        this.branches.cancelAll()
        return end(this.input, command.end, this.root)
      }
      if (this.inbox.length === 0 && this.renewal.isDue(answer)) return renew(this.input, this.segment + 1)
      await this.wait(command.more, this.renewal.update())
      this.ready = this.inbox.map((one) => this.branches.titleOf(one)).join(', ') || 'the next nodes'
    }
  }

  /** Runs a segment. @returns undefined if its attempts are used up, and the history is so long that a new one begins. */
  private async advance(happened: Happened[]): Promise<SegmentAnswer | undefined> {
    const { organization_id, run_id, resume, database, engine } = this.input
    const { segment, after } = this
    const input: SegmentInput = {
      organization_id,
      run_id,
      segment,
      happened,
      ...(resume && segment === resume.segment && { resume, origin: workflowInfo().originalExecutionRunId }),
      ...(after !== undefined && { after }),
      ...(this.renewal.drain && { drain: true }),
      ...(database !== undefined && { database }),
      history_length: workflowInfo().historyLength,
    }
    for (;;)
      try {
        return await advance(this.ready, input, engine)
      } catch (error) {
        // Its attempts are used up, each of which is six events of the history.
        if (engine < 4 || !(error instanceof TemporalFailure)) throw error
        if (this.renewal.isDue()) return undefined
      }
  }

  /** Shows the answer in the Temporal UI. */
  private show({ details, state, version, expected_by }: SegmentAnswer): void {
    setCurrentDetails(details)
    if (state !== undefined) showAttribute({ key: { name: STATE_ATTRIBUTE, type: 'KEYWORD' }, value: state })
    if (this.input.engine >= 4 && version !== undefined) upsertMemo({ workflow_version: version })
    if (expected_by !== undefined)
      showAttribute({
        key: { name: EXPECTED_BY_ATTRIBUTE, type: 'DATETIME' },
        value: expected_by === null ? null : new Date(expected_by),
      })
  }

  /** @returns `end`: the command that ends the run; `more`: whether the next segment follows at once. */
  private applyCommands({ commands }: SegmentAnswer): { end?: EndCommand; more: boolean } {
    let more = false
    this.after = undefined
    for (const command of commands) {
      if (command.type === 'end') return { end: command, more }
      if (command.type === 'continue') {
        more = true
        this.after = command.after
      } else this.branches.apply(command)
    }
    if (this.after === undefined) this.branches.dropUnwanted()
    return { more }
  }

  /** Waits until something has happened, unless the next segment follows at once. */
  private async wait(more: boolean, startsAgain: boolean): Promise<void> {
    const isHappening = () => this.inbox.length > 0
    this.pages = more ? this.pages + 1 : 0
    if (this.pages === PAGES && this.input.engine >= 3) {
      this.pages = 0
      await sleep(1)
    }
    const { renewal } = this
    if (renewal.drain && this.after === undefined) renewal.looked(await condition(isHappening, renewal.look))
    else if (!more && !startsAgain) await condition(isHappening)
  }
}

type EndCommand = Command & { type: 'end' }
type RunResult = EndCommand['status']

/** Sets a search attribute, if the run was started with ours: the namespace may lack them. */
function showAttribute(pair: SearchAttributeUpdatePair): void {
  if (
    workflowInfo().typedSearchAttributes.get({ name: ORGANIZATION_ATTRIBUTE, type: 'KEYWORD' }) === undefined
  )
    return
  upsertSearchAttributes([pair])
}

/**
 * Segments in a row that reach their limit, after which the workflow task ends. Signals and cancellations arrive only
 * in the next task, and a task is repeated from its start if its worker dies.
 */
const PAGES = 4

/**
 * Continues the run in a new workflow, whose first segment issues the commands of all open nodes. `segment` was never
 * tried: one that was may have been recorded although its answer was lost.
 * @param happened what no segment has recorded.
 */
function renew(input: RunInput, segment: number, happened: Happened[] = []): Promise<never> {
  const { happened: _, ...same } = input
  return continueAsNew<typeof run>({
    ...same,
    resume: { segment, count: input.resume?.count ?? 0 },
    ...(happened.length > 0 && { happened }),
  })
}

/** Ends the workflow in Temporal with the status that `advance` has recorded. */
async function end(
  { engine }: RunInput,
  { status, error }: EndCommand,
  root: CancellationScope,
): Promise<{ status: RunResult }> {
  // Failed in Temporal too, for its filters and alerts; benign, because it is the author's error.
  if (engine >= 2 && error)
    throw ApplicationFailure.create({
      type: error.code,
      message: error.message,
      nonRetryable: true,
      category: 'BENIGN',
    })
  if (status !== 'cancelled') return { status }
  // Cancelled before the first segment. Temporal ends a workflow as Canceled only after a request, which `advance`
  // sends.
  if (engine >= 2 && !root.consideredCancelled)
    await condition(() => root.consideredCancelled, CANCELLATION_ARRIVES)
  throw new CancelledFailure('the run was cancelled')
}

const CANCELLATION_ARRIVES = '1 minute'

/**
 * An unavailable database delays the run but never fails it: the loop calls it again when its attempts are used up, and
 * it has no schedule-to-close timeout. `advance` itself ends a run that can never succeed.
 */
function advance(summary: string, input: SegmentInput, engine: RunInput['engine']): Promise<SegmentAnswer> {
  const { advance } = proxyLocalActivities<{ advance(input: SegmentInput): Promise<SegmentAnswer> }>({
    ...IN_DATABASE,
    ...(engine >= 4 && PATIENT),
    summary: summaryOf(summary),
  })
  return advance(input)
}

const PATIENT = {
  localRetryThreshold: PACE.longestPauseInTask,
  retry: {
    initialInterval: PACE.firstRetry,
    backoffCoefficient: 2,
    maximumInterval: PACE.lastRetry,
    maximumAttempts: PACE.attempts,
  },
}
