import { proxyLocalActivities, workflowInfo } from '@temporalio/workflow'

/** What the Schedule of a workflow passes to each start. `revision` is that of the Schedule. */
export interface FireInput {
  organization_id: string
  workflow_id: string
  revision: number
}

/** The run that was queued; null if the workflow has no active schedule. */
export interface Fired {
  run_id: string | null
}

export interface FireActivities {
  /** `scheduled_at`: ISO 8601. */
  queueScheduledRun(input: FireInput & { scheduled_at: string }): Promise<Fired>
}

/**
 * All that a Temporal Schedule starts: it queues a run of the workflow, once per scheduled time. The run goes the way of
 * every other run, so that limits of concurrency apply to it.
 */
export function fire(input: FireInput): Promise<Fired> {
  const { searchAttributes, startTime } = workflowInfo()
  const [scheduled = startTime] = (searchAttributes.TemporalScheduledStartTime ?? []) as Date[]
  const { queueScheduledRun } = proxyLocalActivities<FireActivities>({
    // As of segments: longer than the statement timeout of the database, and retried without limit.
    startToCloseTimeout: '75 seconds',
    retry: { initialInterval: '100 ms', backoffCoefficient: 2, maximumInterval: '20 seconds' },
    localRetryThreshold: '2 seconds',
    summary: 'Queue the run',
  })
  return queueScheduledRun({ ...input, scheduled_at: scheduled.toISOString() })
}
