import type { ClaimedAccountMail } from '../../db/access/account-mails.ts'
import type { MailOutcome } from '../../db/queue/mails.ts'
import type { MailedTask } from '../../db/records/reminder-mails.ts'
import { attemptMail } from './attempt.ts'
import type { Mailer } from './mailer.ts'
import { plainName } from './plain-name.ts'

/** Sends the reminder of a task to its assignee. `service`: the address of the console. */
export function mailReminder(
  mailer: Mailer,
  { id, address }: Pick<ClaimedAccountMail, 'id' | 'address'>,
  { task, task_id, service }: { task: MailedTask; task_id: string; service: string },
  signal: AbortSignal,
): Promise<MailOutcome> {
  // Whoever may create tasks writes the title, an incoming webhook too: no mail program may make a link of it.
  const title = plainName(task.title)
  const text = [
    title,
    ...(task.due_at ? [`Due: ${timeIn(task.due_at, task.timezone)}`] : []),
    `${service}/records/tasks/${task_id}`,
    `${service} sent this mail because the task is assigned to you in “${plainName(task.organization_name)}”. To stop such mails: ${service}/organizations`,
  ].join('\n\n')
  return attemptMail(
    mailer,
    { key: `account mail ${id}`, address, subject: `Reminder: ${title}`, text },
    signal,
  )
}

/** Such as `2026-02-02 09:00 (Europe/Berlin)`. */
function timeIn(time: Date, timeZone: string): string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' })
  return `${format.format(time)} (${timeZone})`
}
