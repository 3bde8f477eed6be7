import type { System, Tenant } from '../postgres/tenancy.ts'
import { leaseRows } from '../queue/lease.ts'

/**
 * A command of the relay to the workflow of a run in Temporal, written in the transaction of the change that needs it:
 * `refresh` makes the workflow read the rows again, `terminate` ends it.
 */

export interface RunCommand {
  organization_id: string
  id: string
  kind: 'run' | 'node_test'
  command: 'refresh' | 'terminate'
  at: Date
}

/** Leases up to `limit` runs with a pending command, oldest command first. */
export const claimRunCommands = (system: System, limit: number): Promise<RunCommand[]> =>
  leaseRows(system, limit, {
    table: 'runs',
    key: 'organization_id, id',
    waits: 'workflow_command is not null',
    order: 'workflow_command_at',
    returning: 'organization_id, id, kind, workflow_command as command, workflow_command_at as at',
    leaseUntil: 'workflow_command_lease_until',
  })

/** Records that these commands were sent. A newer command of the same run stays pending. */
export async function markCommandsSent(system: System, commands: RunCommand[]): Promise<void> {
  await system('runs')
    .whereIn(
      ['organization_id', 'id', 'workflow_command_at'],
      commands.map(({ organization_id, id, at }) => [organization_id, id, at] as never),
    )
    .update({ workflow_command: null, workflow_command_lease_until: null })
}

/** Signals the workflow of a run whose pause was requested that no attempt is in progress any more. */
export async function refreshPausing(tx: Tenant, runId: string): Promise<void> {
  const count = await tx
    .trx('runs')
    .where({ organization_id: tx.organizationId, id: runId })
    .whereNotNull('pause_requested_at')
    .whereNull('ended_at')
    .update({
      workflow_command: 'refresh',
      workflow_command_at: tx.trx.raw('clock_timestamp()'),
      workflow_command_lease_until: null,
    })
  if (count > 0) tx.wake('agx_run_commands')
}
