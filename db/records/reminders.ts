import { insertEvents } from '../events/outbox.ts'
import type { System, Tenant } from '../postgres/tenancy.ts'
import { listDueRows } from '../queue/due-rows.ts'
import { readRecords } from './read.ts'
import { mailReminders } from './reminder-mails.ts'

/**
 * Reminders of tasks: `task.reminder` at `reminder_at`, once for each time that is set, while the task is open. The relay
 * finds them by one query, so that one which was due while no worker lived is raised after. One that had passed when the
 * task was made, as in an import, is not. The assignee gets a mail, if it wants one.
 */

/** SQL: whether a reminder is to come. The condition of a partial index. */
const TO_COME = `reminder_at > reminded_until and deleted_at is null and status not in ('done', 'cancelled')`
const DUE = `reminder_at <= now() and ${TO_COME}`

/** Up to `limit` tasks with a due reminder, by organization; organizations take turns, each with its oldest first. */
export const listDueReminders = (system: System, limit: number) =>
  listDueRows(system, { table: 'tasks', at: 'reminder_at', waits: TO_COME, due: DUE }, limit)

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
  const found = await readRecords(
    tx,
    'tasks',
    rows.map(({ id }) => id),
  )
  const tasks = [...found.values()]
  await insertEvents(
    tx,
    tasks.map((data) => ({ name: 'task.reminder', data })),
  )
  await mailReminders(tx, tasks)
}
