import { insertReminderMails, type TaskReminder } from '../access/account-mails.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * Mails of reminders, to the assignees who want them. A mail is queued in the transaction that raises the reminder, so
 * there is one for each; whether it is still wanted, and what it says, is decided when it is sent.
 */

/** Queues a mail for each of the tasks whose assignee wants one. */
export async function mailReminders(tx: Tenant, tasks: readonly AgxRecord[]): Promise<void> {
  const assignees = new Set(tasks.map(({ assignee_id }) => assignee_id).filter(Boolean))
  if (assignees.size === 0) return
  const users = await tx
    .trx('memberships as m')
    .join('users as u', 'u.id', 'm.user_id')
    .where({ 'm.organization_id': tx.organizationId, 'm.task_reminder_mails': true })
    .whereIn('m.user_id', [...assignees] as string[])
    .select<{ id: string; email: string }[]>('u.id', 'u.email')
  const addresses = new Map(users.map(({ id, email }) => [id, email]))
  await insertReminderMails(
    tx,
    tasks.flatMap(({ id, assignee_id, reminder_at }) => {
      const user_id = String(assignee_id)
      const address = addresses.get(user_id)
      const reminder = { task_id: id, user_id, reminder_at: new Date(String(reminder_at)).toISOString() }
      return address === undefined ? [] : [{ address, reminder }]
    }),
  )
}

/** What the mail of a reminder says, and the address of the assignee when it is sent. */
export interface MailedTask {
  address: string
  title: string
  due_at: Date | null
  timezone: string
  organization_name: string
}

/** The hours in which a reminder is of use: longer than a mail server may defer the mail, less than a quota of a day. */
const USEFUL_HOURS = 12

/**
 * The task of a mail; undefined if the mail is not wanted any more: the task was done, cancelled, deleted or assigned to
 * somebody else, its reminder moved or removed, the assignee left or wants no such mails, or the reminder is too old.
 */
export async function findMailedTask(
  tx: Tenant,
  { task_id, user_id, reminder_at }: TaskReminder,
): Promise<MailedTask | undefined> {
  const { rows } = await tx.trx.raw<{ rows: MailedTask[] }>(
    `select u.email as address, t.title, t.due_at, coalesce(o.settings ->> 'timezone', 'UTC') as timezone, o.name as organization_name
     from tasks t
       join memberships m on m.organization_id = t.organization_id and m.user_id = t.assignee_id
       join users u on u.id = m.user_id
       join organizations o on o.id = t.organization_id
     where t.organization_id = ? and t.id = ? and t.assignee_id = ? and t.reminder_at = ?
       and t.reminder_at > now() - interval '${USEFUL_HOURS} hours'
       and m.task_reminder_mails and t.deleted_at is null and t.status not in ('done', 'cancelled')`,
    [tx.organizationId, task_id, user_id, reminder_at],
  )
  return rows[0]
}
