import type { RunStatus } from '../../workflows/shared/statuses.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { defineQueue } from '../queue/queue.ts'

/**
 * A command of the relay to the workflow of a run in Temporal, written in the transaction of the change that needs it:
 * `refresh` makes the workflow read the rows again, `terminate` ends it.
 */

export interface RunCommand {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
  status: RunStatus
  workflow_command: 'refresh' | 'terminate'
  workflow_command_at: Date
}

/** Runs with a pending command, oldest command first. */
export const runCommands = defineQueue<RunCommand>({
  table: 'runs',
  key: ['organization_id', 'id'],
  waits: 'workflow_command is not null',
  order: 'workflow_command_at',
  returning: ['kind', 'status', 'workflow_command', 'workflow_command_at'],
  lease: 'workflow_command_lease_until',
  // A newer command of the same run stays pending.
  done: { sets: 'workflow_command = null', same: ['workflow_command_at'] },
})

/**
 * Signals the workflow of a run that no attempt is in progress any more: of one whose pause was requested, or that ends
 * and waits for its last calls.
 */
export async function refreshStopping(tx: Tenant, runId: string): Promise<void> {
  const count = await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id: runId })
    .whereRaw('(pause_requested_at is not null or ending is not null)')
    .whereNull('ended_at')
    .update({
      workflow_command: 'refresh',
      workflow_command_at: tx.trx.raw('clock_timestamp()'),
      workflow_command_lease_until: null,
    })
  if (count > 0) tx.wake('agx_run_commands')
}
