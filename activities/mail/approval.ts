import type { MailOutcome } from '../../db/queue/mails.ts'
import type { ClaimedMail, MailedApproval, MailedEvent } from '../../db/runs/approval-mails.ts'
import { attemptMail } from './attempt.ts'
import type { Mailer } from './mailer.ts'

const PREFIXES: Record<MailedEvent, string> = {
  'approval.requested': '',
  'approval.reminder': 'Reminder: ',
  'approval.escalated': 'Escalated: ',
}

/** Sends the link of an approval to one address. Its Message-ID is the same in each attempt. */
export function mailApproval(
  mailer: Mailer,
  { id, event, address }: Pick<ClaimedMail, 'id' | 'event' | 'address'>,
  approval: MailedApproval & { link: string },
  signal: AbortSignal,
): Promise<MailOutcome> {
  const message = {
    key: `approval mail ${id}`,
    address,
    subject: `${PREFIXES[event]}${approval.title}`,
    text: textOf(approval),
  }
  return attemptMail(mailer, message, signal)
}

/** Plain text: the tenant's words cannot hide where the link leads. */
function textOf({ title, message, workflow_name, expires_at, link }: MailedApproval & { link: string }) {
  return [
    message ?? title,
    `Approve or reject:\n${link}`,
    'Whoever has this link can decide: pass it on only to those who may.',
    [
      `Workflow: ${workflow_name}`,
      ...(expires_at ? [`Open until: ${expires_at.toISOString().slice(0, 16).replace('T', ' ')} UTC`] : []),
    ].join('\n'),
  ].join('\n\n')
}
