import { Context } from '@temporalio/activity'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { reopenRun, takeOver } from '../db/runs/moves/starts.ts'
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
  /**
   * The workflow starts in the middle of the run, or the database does not have the segment before, because it was
   * restored to an earlier moment.
   */
  reissue: boolean
}

/**
 * The state of the run, or an answer if there is nothing to do; undefined if only the newest Temporal run may go on.
 */
export async function loadSegment(
  tx: Tenant,
  { run_id, segment, happened, resume }: SegmentInput,
  { id: temporalRunId, newest }: TemporalRun,
): Promise<Loaded | SegmentAnswer | undefined> {
  const state = await lockRun(tx, run_id, { temporal_run_id: temporalRunId, segment })
  if (!state) return endedAs('terminated', `**terminated**: ${UNKNOWN_RUN.message}`, UNKNOWN_RUN)
  if (state.answer) return state.answer
  const refresh = happened.some(({ type }) => type === 'refresh')
  const reissue = refresh || resume !== undefined || (segment > 0 && !state.follows)
  const { status, temporal_run_id: owner, engine } = state.run
  if (engine > ENGINE) throw new NeedsNewerWorker()
  if (owner === null || owner === temporalRunId) {
    if (status === 'paused') return endedAs(status, 'The run is paused.')
    if (status !== 'queued' && status !== 'running') return hasEnded(status)
    return { state, reissue }
  }
  if (!newest) return undefined
  const mine =
    (resume && (await takeOver(tx, run_id, temporalRunId, resume))) ||
    (await reopenRun(tx, run_id, temporalRunId, segment, resume))
  if (!mine) return SUPERSEDED
  const again = await lockRun(tx, run_id, undefined)
  return again ? { state: again, reissue } : endedAs('terminated', 'The run no longer exists.', UNKNOWN_RUN)
}

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
const hasEnded = (status: EndStatus): SegmentAnswer =>
  endedAs(
    status,
    'The run had ended.',
    // `advance` terminates the workflow.
    status === 'terminated' ? null : { code: status, message: `The run had ended as ${status}.` },
  )

const SUPERSEDED = endedAs('terminated', 'Another Temporal execution has taken over this run.')
