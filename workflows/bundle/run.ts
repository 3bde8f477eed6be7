import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  TemporalFailure,
  upsertMemo,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import { PACE } from './pace.ts'
import {
  type Command,
  type Happened,
  IN_DATABASE,
  type NodeAt,
  type NodeInput,
  ORGANIZATION_ATTRIBUTE,
  poolTaskQueue,
  REFRESH,
  RUN_WORKFLOW_VERSION,
  type RunInput,
  type SegmentAnswer,
  type SegmentInput,
  STATE_ATTRIBUTE,
} from './protocol.ts'
import { Renewal } from './renewal.ts'
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
  return CancellationScope.nonCancellable(() => loop(input, inbox, root))
}

async function loop(
  input: RunInput,
  inbox: Happened[],
  root: CancellationScope,
): Promise<{ status: RunResult }> {
  const { organization_id, run_id } = input
  // Created on first use: a scope has promises, which WORKFLOW_STACK_TRACES makes expensive.
  let scope: CancellationScope | undefined
  const branches = () => (scope ??= new CancellationScope())
  const open = new Map<string, Branch>()
  const callsAreOpen = () => [...open.values()].some((branch) => branch.calls)
  let timeLimit: CancellationScope | undefined
  const renewal = input.engine >= 4 ? new Renewal(PACE.drainLooks) : undefined
  // Of version 3: whether the history is long, and calls are open after DRAIN.
  let drain = false
  let late = false
  let pages = 0
  let after: string | undefined
  // While the workflow catches up: the branches that the rows want, which may come in several answers.
  let wanted: Set<string> | undefined
  let ready = input.starts_with

  const { resume } = input
  const first = resume?.segment ?? 0
  for (let segment = first; ; segment++) {
    const happened = inbox.splice(0)
    const segmentInput: SegmentInput = {
      organization_id,
      run_id,
      segment,
      happened,
      ...(resume && segment === first && { resume }),
      ...(after !== undefined && { after }),
      ...((renewal?.drain ?? drain) && { drain: true }),
      ...(input.database !== undefined && { database: input.database }),
      history_length: workflowInfo().historyLength,
    }
    let answer: SegmentAnswer | undefined
    while (!answer)
      try {
        answer = await advance(ready, segmentInput, input)
      } catch (error) {
        // Its attempts are used up, each of which is six events of the history.
        if (!renewal || !(error instanceof TemporalFailure)) throw error
        if (Renewal.isDue({ open: open.size, calls: callsAreOpen(), busy: true }))
          return renew(input, segment + 1, [...happened, ...inbox])
      }
    setCurrentDetails(answer.details)
    if (answer.state !== undefined) showState(answer.state)
    for (const one of happened) if ('node' in one) open.delete(keyOf(one))
    if (answer.segment !== undefined) {
      segment = answer.segment
      wanted = new Set()
    }

    if (input.engine >= 4 && answer.version !== undefined) upsertMemo({ workflow_version: answer.version })
    if (input.engine >= 4 && answer.replaces_timeout) {
      timeLimit?.cancel()
      timeLimit = undefined
    }
    if (answer.timeout_ms !== undefined && !timeLimit) {
      const timeout = { type: 'timer', title: 'Time limit of the workflow', ms: answer.timeout_ms } as const
      timeLimit = new CancellationScope({ parent: branches(), cancellable: true })
      launch(timeLimit, inbox, { type: 'timeout' }, () => sleep(timeout.ms, { summary: timeout.title }))
    }
    let more = false
    after = undefined
    for (const command of answer.commands) {
      if ('node' in command) wanted?.add(keyOf(command))
      if (command.type === 'end') {
        scope?.cancel()
        return end(input, command, root)
      }
      if (command.type === 'continue') {
        more = true
        after = command.after
      } else if (command.type === 'cancel') {
        open.get(keyOf(command))?.scope?.cancel()
        open.delete(keyOf(command))
      }
      // Commands are issued again for a restored database: branches that are still open are not started twice.
      else if (!open.has(keyOf(command))) open.set(keyOf(command), begin(command, branches(), inbox, input))
    }
    if (wanted && after === undefined) {
      keepOnly(wanted, open)
      wanted = undefined
    }
    let startsAgain = false
    if (renewal) {
      const busy = !renewal.drain || answer.busy === true
      if (inbox.length === 0 && Renewal.isDue({ open: open.size, calls: callsAreOpen(), busy }))
        return renew(input, segment + 1)
      startsAgain = renewal.update()
    } else {
      const isLong = input.engine >= 3 && workflowInfo().continueAsNewSuggested
      if (isLong && inbox.length === 0 && (!callsAreOpen() || late)) return renew(input, segment + 1)
      drain ||= isLong
    }
    pages = more ? pages + 1 : 0
    if (pages === PAGES && input.engine >= 3) {
      pages = 0
      await sleep(1)
    }
    const isHappening = () => inbox.length > 0
    if (renewal?.drain && after === undefined) {
      if (!(await condition(isHappening, PACE.drainLook))) renewal.looked()
    } else if (drain) late = !(await condition(isHappening, DRAIN))
    else if (!more && !startsAgain) await condition(isHappening)
    const settled = inbox.map((one) =>
      'node' in one ? `after ${open.get(keyOf(one))?.title ?? one.node}` : one.type,
    )
    ready = settled.join(', ') || 'the next nodes'
  }
}

type RunResult = (Command & { type: 'end' })['status']

/** Sets AgxState, if the run was started with our search attributes: the namespace may lack them. */
function showState(state: string | null): void {
  if (
    workflowInfo().typedSearchAttributes.get({ name: ORGANIZATION_ATTRIBUTE, type: 'KEYWORD' }) === undefined
  )
    return
  upsertSearchAttributes([{ key: { name: STATE_ATTRIBUTE, type: 'KEYWORD' }, value: state }])
}

/** What the workflow waits for, for one node. */
interface Branch {
  title: string
  /** Whether it waits for an activity. */
  calls: boolean
  /** The scope of a branch that can end before the run: a wait that gets its answer, or a node in an item of a loop. */
  scope: CancellationScope | undefined
}

/** Cancels the branches that no command asks for: the rows no longer wait for them. */
function keepOnly(wanted: ReadonlySet<string>, open: Map<string, Branch>): void {
  for (const [key, branch] of open) {
    if (wanted.has(key)) continue
    branch.scope?.cancel()
    open.delete(key)
  }
}

const nodeOf = ({ node, path }: NodeAt): NodeAt => (path === undefined ? { node } : { node, path })
const keyOf = ({ node, path }: NodeAt) => (path === undefined ? node : `${path}/${node}`)

function begin(
  command: Command & { type: 'timer' | 'external' },
  branches: CancellationScope,
  inbox: Happened[],
  { organization_id, run_id }: RunInput,
): Branch {
  const { type, title } = command
  const node = nodeOf(command)
  const alone = type === 'timer' || command.path !== undefined
  const own = alone ? new CancellationScope({ parent: branches, cancellable: true }) : undefined
  const scope = own ?? branches
  const branch: Branch = { title, calls: type === 'external', scope: own }
  if (type === 'timer')
    launch(scope, inbox, { type, ...node }, () => sleep(command.ms, { summary: summaryOf(title) }))
  else {
    const call = () => external(command, { organization_id, run_id, ...node })
    launch(scope, inbox, { type: 'settled', ...node }, () => {
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

/**
 * Segments in a row that reach their limit, after which the workflow task ends. Signals and cancellations arrive only
 * in the next task, and a task is repeated from its start if its worker dies.
 */
const PAGES = 4

/** The wait for open activities before a workflow of version 3 continues as new; those still open are repeated. */
const DRAIN = '5 minutes'

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
  { status, error }: Command & { type: 'end' },
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

/** Waits beside the loop, then puts the outcome into the inbox, unless the run has ended. */
function launch(
  branches: CancellationScope,
  inbox: Happened[],
  then: Happened,
  wait: () => Promise<unknown>,
): void {
  branches.run(wait).then(
    () => inbox.push(then),
    (error: unknown) => {
      if (!branches.consideredCancelled) inbox.push(failure(then, error))
    },
  )
}

function failure(then: Happened, error: unknown): Happened {
  if (!('node' in then)) return then
  const cause = error instanceof ActivityFailure ? error.cause : error
  const code = cause instanceof ApplicationFailure && cause.type ? cause.type : 'activity_failed'
  const message = cause instanceof Error ? cause.message : 'The activity failed.'
  return { type: 'failed', ...nodeOf(then), code, message: message.slice(0, 1_000) }
}

/**
 * An unavailable database delays the run but never fails it: the loop calls it again when its attempts are used up, and
 * it has no schedule-to-close timeout. `advance` itself ends a run that can never succeed.
 */
function advance(summary: string, input: SegmentInput, { engine }: RunInput): Promise<SegmentAnswer> {
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
