import type { WorkflowExecutionDescription } from '@temporalio/client'
import type { IdleRun } from '../db/runs/queue.ts'

/**
 * Of a workflow task that is repeated, Temporal stores the events of its schedule and start only when it completes; the
 * worker counts them.
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
