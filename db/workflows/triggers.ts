import type { Trigger } from '../../workflows/definition/types.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * Replaces the rows of `workflow_triggers` by the triggers of the version that is being activated; none where the
 * workflow is deactivated or deleted. The caller holds the workflow's row.
 */
export async function replaceTriggers(
  tx: Tenant,
  workflowId: string,
  active?: { version: number; triggers: Trigger[] },
): Promise<void> {
  const key = { organization_id: tx.organizationId, workflow_id: workflowId }
  await tx.trx('workflow_triggers').where(key).delete()
  if (!active || active.triggers.length === 0) return
  await tx.trx('workflow_triggers').insert(
    active.triggers.map((trigger, position) => ({
      ...key,
      position,
      version: active.version,
      type: trigger.type,
      ...(trigger.type === 'event' ? { events: trigger.events, when: trigger.when ?? null } : {}),
      ...(trigger.type === 'schedule' ? { cron: trigger.cron, timezone: trigger.timezone } : {}),
    })),
  )
}
