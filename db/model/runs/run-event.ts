import type { RunError, RunState } from '../../../workflows/interpret/run-state.ts'
import type { EndStatus } from '../../../workflows/shared/statuses.ts'
import type { NewEvent } from '../events/event.ts'

/** The event of a run's start or end. Its data is the run as in the API, without its nodes. */
export function runEvent(
  run: RunState['run'],
  status: 'running' | Exclude<EndStatus, 'cancelled'>,
  end: { outputs?: unknown; error?: RunError | null } = {},
): NewEvent {
  const names = { running: 'workflow.started', completed: 'workflow.completed' } as Record<string, string>
  return {
    cause: run.id,
    name: names[status] ?? 'workflow.failed',
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
  }
}
