import { insertEvents } from '../events/outbox.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { readRecords } from './read.ts'

/**
 * Reminders of tasks: `task.reminder` at `reminder_at`, once for each time that is set, while the task is open. The relay
 * finds them by one query, so that one which was due while no worker lived is raised after. One that had passed when the
 * task was made, as in an import, is not.
 */

/** SQL: whether a reminder is to come. The condition of a partial index. */
const TO_COME = `reminder_at > reminded_until and deleted_at is null and status not in ('done', 'cancelled')`
const DUE = `reminder_at <= now() and ${TO_COME}`

/** Up to `limit` tasks with a due reminder, by organization; organizations take turns, each with its oldest first. */
export async function listDueReminders(
  system: System,
  limit: number,
): Promise<{ organization_id: string; ids: string[] }[]> {
  const { rows } = await system.raw<{ rows: { organization_id: string; ids: string[] }[] }>(
    // A skip scan of the partial index, as for late runs.
    `with recursive organizations as (
       (select organization_id from tasks where ${TO_COME} order by organization_id limit 1)
       union all
       select next.* from organizations o cross join lateral (
         select t.organization_id from tasks t where ${TO_COME} and t.organization_id > o.organization_id
         order by t.organization_id limit 1) next
     ), due as (
       select o.organization_id, d.id, d.turn from organizations o cross join lateral (
         select t.id, row_number() over (order by t.reminder_at) as turn from tasks t
         where t.organization_id = o.organization_id and ${DUE} order by t.reminder_at limit :limit) d
       order by d.turn limit :limit)
     select organization_id, array_agg(id order by turn) as ids from due group by organization_id`,
    { limit },
  )
  return rows
}

/** Raises the reminders, each once. A locked task is skipped: it is due the next time, too. */
export async function raiseReminders(tx: Tenant, ids: string[]): Promise<void> {
  const { rows } = await tx.trx.raw<{ rows: { id: string }[] }>(
    `with due as (
       select id from tasks where organization_id = :organizationId and id = any(cast(:ids as uuid[]))
         and ${DUE} order by id for no key update skip locked)
     update tasks t set reminded_until = t.reminder_at from due
     where t.organization_id = :organizationId and t.id = due.id returning t.id`,
    { organizationId: tx.organizationId, ids },
  )
  if (rows.length === 0) return
  const tasks = await readRecords(
    tx,
    'tasks',
    rows.map(({ id }) => id),
  )
  await insertEvents(
    tx,
    [...tasks.values()].map((data) => ({ name: 'task.reminder', data })),
  )
}
