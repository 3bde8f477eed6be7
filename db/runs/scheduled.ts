import { v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../postgres/tenancy.ts'
import { insertRuns } from './runs.ts'

/** A time of a schedule. `scheduled_at`: ISO 8601 with milliseconds. */
export interface ScheduledTime {
  scheduled_at: string
  source: 'schedule' | 'backfill'
}

/**
 * Queues the runs of times of a workflow's schedule, once per time, with one statement.
 * @returns the run's id by time, the same for repeated calls; empty if the workflow has no active schedule.
 */
export async function createScheduledRuns(
  tx: Tenant,
  workflowId: string,
  times: readonly ScheduledTime[],
): Promise<Map<string, string>> {
  const { organizationId } = tx
  // Before the statement, so that the notification can be sent with it.
  tx.wake('agx_runs')
  const { rows: inserted } = await tx.trx.raw<{ rows: { id: string; scheduled_at: string }[] }>(
    `${insertRuns(
      `select t.organization_id, f.id, t.workflow_id, t.version, w.name,
         jsonb_strip_nulls(jsonb_build_object('type', 'schedule', 'scheduled_at', f.scheduled_at,
           'cron', t.schedule -> 'cron', 'every', t.schedule -> 'every', 'timezone', t.schedule -> 'timezone',
           'backfill', case when f.source = 'backfill' then true end)) as trigger,
         f.scheduled_at as trigger_key, t.inputs, cast(null as uuid) as record_id, 0 as depth,
         cast(null as uuid) as cause, cast(null as uuid) as parent_run_id, cast(null as jsonb) as error,
         cast(null as uuid) as trace_id
       from (select * from workflow_triggers
           where organization_id = :organizationId and workflow_id = :workflowId and type = 'schedule'
           order by position limit 1) t
         join workflows w on w.organization_id = t.organization_id and w.id = t.workflow_id
         cross join jsonb_to_recordset(:times) as f(id uuid, scheduled_at text, source text)`,
    )} returning id, trigger_key as scheduled_at`,
    { organizationId, workflowId, times: JSON.stringify(times.map((time) => ({ id: uuidv7(), ...time }))) },
  )
  const ids = new Map(inserted.map(({ id, scheduled_at }) => [scheduled_at, id]))
  const left = times.map(({ scheduled_at }) => scheduled_at).filter((time) => !ids.has(time))
  if (left.length === 0) return ids
  const earlier = await tx
    .trx('runs')
    .where({ organization_id: organizationId, workflow_id: workflowId })
    .whereIn('trigger_key', left)
    .select<{ id: string; scheduled_at: string }[]>('id', 'trigger_key as scheduled_at')
  for (const { id, scheduled_at } of earlier) ids.set(scheduled_at, id)
  return ids
}
