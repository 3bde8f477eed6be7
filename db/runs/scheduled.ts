import { v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../postgres/tenancy.ts'
import { insertRuns } from './runs.ts'

/**
 * Queues the run of a time of a workflow's schedule, once per time. `scheduledAt`: ISO 8601 with milliseconds.
 * @returns the run's id, the same for repeated calls; undefined if the workflow has no active schedule.
 */
export async function createScheduledRun(
  tx: Tenant,
  workflowId: string,
  scheduledAt: string,
  source: 'schedule' | 'backfill' = 'schedule',
): Promise<string | undefined> {
  const { organizationId } = tx
  const id = uuidv7()
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    insertRuns(
      `select t.organization_id, cast(:id as uuid) as id, t.workflow_id, t.version, w.name,
         jsonb_strip_nulls(jsonb_build_object('type', 'schedule', 'scheduled_at', cast(:scheduledAt as text),
           'cron', t.schedule -> 'cron', 'every', t.schedule -> 'every', 'timezone', t.schedule -> 'timezone',
           'backfill', case when :source = 'backfill' then true end)) as trigger,
         cast(:scheduledAt as text) as trigger_key, t.inputs, cast(null as uuid) as record_id, 0 as depth,
         cast(null as uuid) as cause, cast(null as uuid) as parent_run_id, cast(null as jsonb) as error,
         cast(null as uuid) as trace_id
       from workflow_triggers t join workflows w on w.organization_id = t.organization_id and w.id = t.workflow_id
       where t.organization_id = :organizationId and t.workflow_id = :workflowId and t.type = 'schedule'
       order by t.position limit 1`,
    ),
    { organizationId, workflowId, id, scheduledAt, source },
  )
  if (rowCount > 0) {
    tx.wake('agx_runs')
    return id
  }
  const earlier = await tx
    .trx('runs')
    .where({ organization_id: organizationId, workflow_id: workflowId, trigger_key: scheduledAt })
    .first<{ id: string } | undefined>('id')
  return earlier?.id
}
