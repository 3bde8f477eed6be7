import type { ScheduleSpec } from '../../workflows/language/definition.ts'
import { recordChange } from '../access/audit-log.ts'
import type { Actor } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { defineQueue } from '../queue/queue.ts'

/**
 * The outbox of Temporal Schedules: a row for each workflow with a schedule. A change of the workflow increments its
 * revision in the same transaction; the relay then updates the Schedule in Temporal, and the sweep finds Schedules that
 * were changed or lost.
 */

export interface ScheduleKey {
  organization_id: string
  workflow_id: string
}

/** The Schedule that Temporal should have for a workflow. */
export interface DesiredSchedule extends ScheduleKey {
  revision: number
  workflow_name: string
  /**
   * `active`: it fires. `paused`: through the API. `inactive`: as its workflow. `deleted`: the workflow is deleted, or
   * its active version has no schedule.
   */
  state: 'active' | 'paused' | 'inactive' | 'deleted'
  /** Its times and policies; null if the workflow is not active. */
  schedule: ScheduleSpec | null
  version: number | null
}

/** Queues an update of a workflow's Schedule in Temporal. `scheduled`: the workflow now has a schedule. */
export async function touchSchedule(tx: Tenant, workflowId: string, scheduled: boolean): Promise<void> {
  const key = { organization_id: tx.organizationId, workflow_id: workflowId }
  const changed = await tx
    .trx('workflow_schedules')
    .where(key)
    .update({ revision: tx.trx.raw('revision + 1'), lease_until: null })
  if (changed === 0 && scheduled) await tx.trx('workflow_schedules').insert(key)
  if (changed > 0 || scheduled) tx.wake('agx_schedules')
}

/** Workflows whose Schedule in Temporal is not up to date. */
export const staleSchedules = defineQueue<ScheduleKey>({
  table: 'workflow_schedules',
  key: ['organization_id', 'workflow_id'],
  waits: 'synced is distinct from revision',
  order: 'lease_until nulls first',
  seconds: 5,
})

/** The Schedule that Temporal should have now. Undefined without a row: none. */
export async function readSchedule(
  system: System,
  { organization_id, workflow_id }: ScheduleKey,
): Promise<DesiredSchedule | undefined> {
  const { rows } = await system.raw<{ rows: DesiredSchedule[] }>(
    `select s.organization_id, s.workflow_id, s.revision, w.name as workflow_name, t.schedule, t.version,
       case when t.workflow_id is not null then case when s.paused_at is null then 'active' else 'paused' end
         when w.status = 'inactive' and w.deleted_at is null then 'inactive' else 'deleted' end as state
     from workflow_schedules s
     join workflows w on w.organization_id = s.organization_id and w.id = s.workflow_id
     left join lateral (
       select * from workflow_triggers t where t.organization_id = s.organization_id
         and t.workflow_id = s.workflow_id and t.type = 'schedule' order by t.position limit 1) t on true
     where s.organization_id = ? and s.workflow_id = ?`,
    [organization_id, workflow_id],
  )
  return rows[0]
}

/**
 * Records that Temporal has this state. A row that has changed since stays in the queue; the row of a deleted schedule
 * is deleted, unless it holds a pause, which stays for the next schedule of the workflow. Times that still wait without
 * a row would do so for ever: they are skipped with it.
 */
export async function markSynced(system: System, told: DesiredSchedule): Promise<void> {
  const { organization_id, workflow_id, revision, state } = told
  const { rows } = await system.raw<{ rows: { deleted: boolean }[] }>(
    `with gone as (
       delete from workflow_schedules s
       where organization_id = :organization_id and workflow_id = :workflow_id and revision = :revision
         and :state = 'deleted' and not (paused_at is not null and exists (select from workflows w
           where w.organization_id = s.organization_id and w.id = s.workflow_id and w.deleted_at is null))
       returning organization_id, workflow_id
     ), skipped as (
       update schedule_fires f set status = 'skipped', reason = 'inactive', decided_at = now() from gone
       where f.organization_id = gone.organization_id and f.workflow_id = gone.workflow_id and f.status = 'waiting')
     select exists (select from gone) as deleted`,
    { organization_id, workflow_id, revision, state },
  )
  if (!rows[0]!.deleted)
    await system('workflow_schedules')
      .where({ organization_id, workflow_id, revision })
      .update({ synced: revision, lease_until: null, checked_at: system.fn.now() })
}

/** Records on the workflow, for its author, that Temporal refused its schedule. It is not retried. */
export async function markRefused(system: System, key: ScheduleKey, reason: string): Promise<void> {
  const { organization_id, workflow_id } = key
  const problem = { message: `Temporal refused the schedule: ${reason}`, at: new Date().toISOString() }
  await system('workflow_triggers')
    .where({ organization_id, workflow_id, type: 'schedule' })
    .update({ problem: JSON.stringify(problem), problems: system.raw('problems + 1') })
  await system('workflow_schedules')
    .where({ organization_id, workflow_id })
    .update({ synced: system.ref('revision'), lease_until: null })
}

/** Up to `limit` workflows whose Schedule was not checked for `idle` (a PostgreSQL interval), nor since `before`. */
export async function listUnchecked(
  system: System,
  idle: string,
  before: Date,
  limit: number,
): Promise<(ScheduleKey & { revision: number })[]> {
  const { rows } = await system.raw<{ rows: (ScheduleKey & { revision: number })[] }>(
    `select organization_id, workflow_id, revision from workflow_schedules
     where synced = revision and checked_at < least(now() - cast(:idle as interval), cast(:before as timestamptz))
     order by checked_at limit :limit`,
    { idle, before, limit },
  )
  return rows
}

/** What a check of a Schedule has found; without `seen`, Temporal did not answer. */
interface Checked {
  revision: number
  equal: boolean
  seen: boolean
  operator_pause: string | null
}

/** Records that the sweep checked Schedules, which of them the relay must repair, and which an operator has paused. */
export async function markChecked(system: System, checked: (ScheduleKey & Checked)[]): Promise<void> {
  await system.raw(
    `update workflow_schedules s set checked_at = now(), synced = case when c.equal then s.synced end,
       operator_pause = case when c.seen then c.operator_pause else s.operator_pause end
     from jsonb_to_recordset(?) as c(organization_id uuid, workflow_id uuid, revision integer, equal boolean,
       seen boolean, operator_pause text)
     where s.organization_id = c.organization_id and s.workflow_id = c.workflow_id and s.revision = c.revision`,
    [JSON.stringify(checked)],
  )
}

/**
 * Locks the schedule of a workflow, so that two of its times are not decided at once. A statement after the lock sees
 * what was committed before it. @returns undefined if Temporal should have no Schedule.
 */
export async function lockSchedule(
  tx: Tenant,
  workflowId: string,
): Promise<{ schedule: ScheduleSpec | null; paused: boolean } | undefined> {
  const row = await rowOf(tx, workflowId)
    .forNoKeyUpdate()
    .first<{ paused_at: Date | null } | undefined>('paused_at')
  if (!row) return undefined
  const trigger = await getTriggerSchedule(tx, workflowId)
  return { schedule: trigger?.schedule ?? null, paused: row.paused_at !== null }
}

/** Ends the lease of a worker that started waiting times of the schedule; see `waitingSchedules`. */
export async function endWaitingLease(tx: Tenant, workflowId: string): Promise<void> {
  await rowOf(tx, workflowId).update({ waiting_lease_until: tx.trx.fn.now() })
}

/** The schedule of the active version, if it has one. */
export const getTriggerSchedule = (
  tx: Tenant,
  workflowId: string,
): Promise<{ schedule: ScheduleSpec; version: number } | undefined> =>
  tx
    .trx('workflow_triggers')
    .where({ organization_id: tx.organizationId, workflow_id: workflowId, type: 'schedule' })
    .orderBy('position')
    .first('schedule', 'version')

/** A pause through the API. */
export interface SchedulePause {
  reason: string | null
  by: Actor
  at: Date
}

/** The pause of a workflow's schedule, if it is paused. */
export async function getPause(tx: Tenant, workflowId: string): Promise<SchedulePause | null> {
  const row = await rowOf(tx, workflowId).first<
    { paused_at: Date | null; paused_by: Actor; pause_reason: string | null } | undefined
  >('paused_at', 'paused_by', 'pause_reason')
  return row?.paused_at ? { reason: row.pause_reason, by: row.paused_by, at: row.paused_at } : null
}

/** The note of an operator's pause in Temporal, which the sweep has found; null: there is none. */
export async function getOperatorPause(tx: Tenant, workflowId: string): Promise<string | null> {
  const row = await rowOf(tx, workflowId).first<{ operator_pause: string | null } | undefined>(
    'operator_pause',
  )
  return row?.operator_pause ?? null
}

/**
 * Pauses the schedule of a workflow: its times start nothing, also after later activations. One that is paused keeps the
 * first pause. Throws `not_found`; `conflict` if the workflow was never activated with a schedule.
 */
export async function pauseSchedule(tx: Tenant, workflowId: string, reason: string | null): Promise<void> {
  const name = await lockForChange(tx, workflowId)
  if (await getPause(tx, workflowId)) return
  await setPause(tx, workflowId, {
    paused_at: tx.trx.fn.now(),
    paused_by: JSON.stringify(tx.actor),
    pause_reason: reason,
  })
  await recordChange(tx, 'workflow.schedule_paused', { id: workflowId, name, details: { reason } })
}

/** Ends the pause. Times that passed meanwhile are not made up for. Throws as `pauseSchedule`. */
export async function resumeSchedule(tx: Tenant, workflowId: string): Promise<void> {
  const name = await lockForChange(tx, workflowId)
  if (!(await getPause(tx, workflowId))) return
  await setPause(tx, workflowId, { paused_at: null, paused_by: null, pause_reason: null })
  // Times that waited when it was paused can start.
  tx.wake('agx_runs')
  await recordChange(tx, 'workflow.schedule_resumed', { id: workflowId, name })
}

/** @returns the name of the workflow. */
async function lockForChange(tx: Tenant, workflowId: string): Promise<string> {
  const workflow = await tx
    .trx('workflows')
    .where({ organization_id: tx.organizationId, id: workflowId, deleted_at: null })
    .first<{ name: string } | undefined>('name')
  if (!workflow) throw notFound('workflow')
  if (!(await lockSchedule(tx, workflowId)))
    throw conflict('the workflow has no active schedule', {
      param: 'workflow_id',
      hint: 'give it a trigger of the type schedule, and activate it',
    })
  return workflow.name
}

async function setPause(tx: Tenant, workflowId: string, pause: Record<string, unknown>): Promise<void> {
  await rowOf(tx, workflowId).update(pause)
  await touchSchedule(tx, workflowId, false)
}

const rowOf = (tx: Tenant, workflowId: string) =>
  tx.trx('workflow_schedules').where({ organization_id: tx.organizationId, workflow_id: workflowId })
