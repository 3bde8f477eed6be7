import type { WorkflowExecutionDescription } from '@temporalio/client'
import type { IdleRun } from '../db/runs/queue.ts'

/**
 * Temporal stores the schedule and the start of a repeated workflow task only when the task completes; the worker counts
 * them.
 */
const UNSTORED = 2

/**
 * Whether Temporal has an earlier state of a run's workflow than the one in which it recorded its last segment: Temporal
 * was restored. Nothing of that workflow can be trusted: see `replaceBehind` in `sweep/runs.ts`.
 */
export const wentBack = (
  { runId, historyLength, raw }: Pick<WorkflowExecutionDescription, 'runId' | 'historyLength' | 'raw'>,
  run: Pick<IdleRun, 'kind' | 'temporal_run_id' | 'history_length'>,
): boolean =>
  run.kind === 'run' &&
  runId === run.temporal_run_id &&
  historyLength + (raw.pendingWorkflowTask ? UNSTORED : 0) < (run.history_length ?? 0)
