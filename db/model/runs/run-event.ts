import type { RunError, RunState } from '../../../workflows/interpret/run-state.ts'
import type { EndStatus, RunStatus } from '../../../workflows/shared/statuses.ts'
import type { NewEvent } from '../events/event.ts'

/** The columns of a run that its events show. */
export type EventRun = Pick<
  RunState['run'],
  'id' | 'workflow_id' | 'workflow_name' | 'workflow_version' | 'status' | 'trigger' | 'created_at'
>

/** The event of a run's start or end. */
export function runEvent(
  run: EventRun,
  status: 'running' | Exclude<EndStatus, 'cancelled'>,
  end: { outputs?: unknown; error?: RunError | null } = {},
): NewEvent {
  const names = { running: 'workflow.started', completed: 'workflow.completed' } as Record<string, string>
  return eventOf(names[status] ?? 'workflow.failed', run, status, end)
}

/** The event of a run that is open for longer than expected. */
export const lateEvent = (run: EventRun): NewEvent => eventOf('workflow.late', run, run.status)

/** Its data is the run as in the API, without its nodes. */
const eventOf = (
  name: string,
  run: EventRun,
  status: RunStatus,
  end: { outputs?: unknown; error?: RunError | null } = {},
): NewEvent => ({
  cause: run.id,
  name,
  data: {
    id: run.id,
    object: 'run',
    workflow_id: run.workflow_id,
    workflow_name: run.workflow_name,
    workflow_version: run.workflow_version,
    status,
    trigger: run.trigger.type,
    outputs: end.outputs ?? null,
    error: end.error ?? null,
    created_at: new Date(run.created_at).toISOString(),
  },
})
