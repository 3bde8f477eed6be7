import { isDeepStrictEqual } from 'node:util'
import { Context } from '@temporalio/activity'
import { isOpenRun } from '../db/model/runs/statuses.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { reopenRun, takeBack, takeOver } from '../db/runs/moves/starts.ts'
import { lockRun } from '../db/runs/state.ts'
import type { SegmentAnswer, SegmentInput } from '../workflows/bundle/protocol.ts'
import { endCommand } from '../workflows/interpret/open-nodes.ts'
import type { RunError, RunState } from '../workflows/interpret/run-state.ts'
import { ENGINE } from '../workflows/nodes/engine.ts'
import type { EndStatus } from '../workflows/shared/statuses.ts'
import { NeedsNewerWorker } from './faults.ts'

/** The start of a segment: the run is locked, and the Temporal run must own it. */

/** The Temporal run that this segment belongs to. `newest`: Temporal has confirmed that it is the newest one. */
export interface TemporalRun {
  id: string
  newest: boolean
}

/**
 * After a reset, a segment of an older Temporal run may still be running: it must not take over the row. Must be called
 * outside of a transaction. @returns the answer that ends an older one; undefined for the newest.
 */
export async function requireNewest(temporalRunId: string): Promise<SegmentAnswer | undefined> {
  const { client, info } = Context.current()
  const { runId } = await client.workflow.getHandle(info.workflowExecution?.workflowId ?? '').describe()
  return runId === temporalRunId ? undefined : SUPERSEDED
}

const UNKNOWN_RUN = {
  code: 'terminated',
  message:
    'The database does not know this run: it was restored to an earlier moment, or the run was purged.',
}

interface Loaded {
  state: RunState
  /** The number under which the segment is recorded. */
  segment: number
  /** The workflow may wait for other nodes than the rows: it starts in the middle of the run, or a store was restored. */
  reissue: boolean
  /** Temporal was restored to an earlier moment: the rows have segments that the workflow does not know. */
  behind: boolean
}

/**
 * The state of the run, or an answer if there is nothing to do; undefined if only the newest Temporal run may go on.
 */
export async function loadSegment(
  tx: Tenant,
  input: SegmentInput,
  { id: temporalRunId, newest }: TemporalRun,
): Promise<Loaded | SegmentAnswer | undefined> {
  const { run_id, segment, resume } = input
  const state = await lockRun(tx, run_id, { temporal_run_id: temporalRunId, segment })
  if (!state) return UNKNOWN
  if (state.recorded && isRepeated(state, input)) return again(state.recorded.answer, input)
  const { status, temporal_run_id: owner, engine } = state.run
  if (engine > ENGINE) throw new NeedsNewerWorker()
  const owns = owner === null || owner === temporalRunId
  // Temporal repeats the task of a workflow that ends if something has arrived meanwhile. It must not go on: after a
  // pause another workflow resumes the run.
  if (owns && segment === state.last && state.recorded && endsWorkflow(state.recorded.answer))
    return state.recorded.answer
  // It has recorded this segment or a later one, or lost the row to a Temporal run that Temporal does not know.
  const behind = state.last !== null && (state.last >= segment || !owns)
  if (owns || behind) {
    if (status === 'paused') return endedAs(status, 'The run is paused.')
    if (!isOpenRun(status)) return hasEnded(status, state.error)
  }
  const loaded = { segment, reissue: behind || mayDiffer(state, input), behind }
  const next = Math.max(state.last ?? 0, state.owner_last ?? 0) + 1
  if (owns) return { ...loaded, state, ...(behind && { segment: next }) }
  if (!newest) return undefined
  if (behind) {
    if (!(await takeBack(tx, run_id, temporalRunId))) return SUPERSEDED
    loaded.segment = next
  } else {
    if (resume && (await takeOver(tx, run_id, temporalRunId, resume)))
      return { ...loaded, state: takenOver(state, temporalRunId) }
    const mine = await reopenRun(
      tx,
      run_id,
      temporalRunId,
      segment,
      resume && { origin: input.origin ?? temporalRunId },
    )
    if (!mine) return SUPERSEDED
  }
  const reread = await lockRun(tx, run_id, undefined)
  return reread
    ? { ...loaded, state: reread }
    : endedAs('terminated', 'The run no longer exists.', UNKNOWN_RUN)
}

/** The state after `takeOver`, which need not be read again: a resumed run costs a third less time in PostgreSQL. */
const takenOver = (state: RunState, temporalRunId: string): RunState => ({
  ...state,
  run: { ...state.run, status: 'running', temporal_run_id: temporalRunId },
  nodes: state.nodes.map((node) => ({
    ...node,
    may_have_called: node.may_have_called || (node.status === 'running' && node.attempt_token != null),
    attempt_token: null,
  })),
})

/**
 * Whether the recorded segment is asked for again because its answer was lost with a worker: it is the last one, and the
 * workflow reports the same. Otherwise Temporal was restored to an earlier moment, and the old answer would swallow what
 * happened since. A refresh has no content that tells one from another: the rows are read again.
 */
function isRepeated({ recorded, last }: RunState, { segment, happened }: SegmentInput): boolean {
  return (
    segment === last &&
    isDeepStrictEqual(recorded?.happened, happened) &&
    !happened.some(({ type }) => type === 'refresh')
  )
}

/**
 * Marks a recorded answer as busy if this segment drains: the answer may be outdated about the calls in progress, or was
 * given before the history became long by the events of the lost task. The workflow asks again before it continues as
 * new.
 */
const again = (answer: SegmentAnswer, { drain }: SegmentInput): SegmentAnswer =>
  drain ? { ...answer, busy: true } : answer

const endsWorkflow = ({ commands }: SegmentAnswer) => commands.some(({ type }) => type === 'end')

/** Whether the workflow may wait for other nodes than the rows although it is not behind them. */
const mayDiffer = ({ last }: RunState, { segment, happened, resume }: SegmentInput): boolean =>
  happened.some(({ type }) => type === 'refresh') ||
  resume !== undefined ||
  // The database was restored to an earlier moment.
  (segment > 0 && last !== segment - 1)

export const endedAs = (
  status: EndStatus | 'paused',
  details: string,
  error: RunError | null = null,
): SegmentAnswer => ({
  commands: [endCommand(status, error)],
  nodes: [],
  details,
})

/** The answer for a run that has ended without this workflow; Temporal shows the same end. */
const hasEnded = (status: EndStatus, error: RunError | null): SegmentAnswer =>
  endedAs(
    status,
    'The run had ended.',
    // `advance` terminates the workflow.
    status === 'terminated' ? null : (error ?? { code: status, message: `The run had ended as ${status}.` }),
  )

/** The answer for a run that the database does not know. */
export const UNKNOWN = endedAs('terminated', `**terminated**: ${UNKNOWN_RUN.message}`, UNKNOWN_RUN)

const SUPERSEDED = endedAs('terminated', 'Another Temporal execution has taken over this run.')
