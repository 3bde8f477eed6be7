import { proxyLocalActivities, workflowInfo } from '@temporalio/workflow'
import { IN_DATABASE } from './protocol.ts'

/** The input that the Schedule of a workflow passes to each start. `revision` is that of the Schedule. */
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
 * The workflow that a Temporal Schedule starts. It queues a run, once per scheduled time: the limits of concurrency
 * apply to it as to every other run.
 */
export function fire(input: FireInput): Promise<Fired> {
  const { searchAttributes, startTime } = workflowInfo()
  const [scheduled = startTime] = (searchAttributes.TemporalScheduledStartTime ?? []) as Date[]
  const { queueScheduledRun } = proxyLocalActivities<FireActivities>({
    ...IN_DATABASE,
    summary: 'Queue the run',
  })
  return queueScheduledRun({ ...input, scheduled_at: scheduled.toISOString() })
}
