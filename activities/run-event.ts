import type { NewEvent } from '../db/events/outbox.ts'
import type { RunError, RunState } from '../workflows/interpret/run-state.ts'

/** The event of a run's start or end; its data is the run as the API shows it, without the nodes. */
export function runEvent(
  run: RunState['run'],
  status: 'running' | 'completed' | 'failed' | 'terminated' | 'lost',
  end: { outputs?: unknown; error?: RunError | null } = {},
): NewEvent {
  const names = { running: 'workflow.started', completed: 'workflow.completed' } as Record<string, string>
  return {
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
