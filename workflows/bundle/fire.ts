import { proxyLocalActivities, workflowInfo } from '@temporalio/workflow'
import { IN_DATABASE } from './protocol.ts'

/** The input that the Schedule of a workflow passes to each start. `revision` is that of the Schedule. */
export interface FireInput {
  organization_id: string
  workflow_id: string
  revision: number
}

/** What became of the time. An operator sees it as the result of the workflow. */
export interface Fired {
  /** Null if none was queued. */
  run_id: string | null
  status?: string
  /** Why it was skipped. */
  reason?: string
}

export interface FireActivities {
  /**
   * `scheduled_at`: the time of the schedule; `started_at`: when Temporal started to fire it, absent in old histories.
   * Both ISO 8601.
   */
  queueScheduledRun(input: FireInput & { scheduled_at: string; started_at?: string }): Promise<Fired>
}

/**
 * The workflow that a Temporal Schedule starts. It queues a run, once per scheduled time, unless the overlap policy of
 * the schedule forbids it; the limits of concurrency apply to the run as to every other.
 */
export function fire(input: FireInput): Promise<Fired> {
  const { searchAttributes, startTime } = workflowInfo()
  const [scheduled = startTime] = (searchAttributes.TemporalScheduledStartTime ?? []) as Date[]
  const { queueScheduledRun } = proxyLocalActivities<FireActivities>({
    ...IN_DATABASE,
    summary: 'Queue the run',
  })
  return queueScheduledRun({
    ...input,
    scheduled_at: scheduled.toISOString(),
    started_at: startTime.toISOString(),
  })
}
