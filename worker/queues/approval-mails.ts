import { mailApproval } from '../../activities/mail/approval.ts'
import type { Mailer } from '../../activities/mail/mailer.ts'
import type { MailOutcome } from '../../db/mails/queue.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { SYSTEM } from '../../db/postgres/tenancy.ts'
import type { ApprovalKey } from '../../db/runs/approval-links.ts'
import { type ClaimedMail, claimMails, findMailedApproval, recordMail } from '../../db/runs/approval-mails.ts'
import type { Queue } from '../relay.ts'

export interface MailDeps {
  /** Undefined if the service cannot send mails. */
  mailer: Mailer | undefined
  /** Without it a link is only a path, which no mail can use. */
  publicUrl: string | undefined
  approvalLink: (approval: ApprovalKey) => string
}

/** Of an attempt; less than the lease of the row. */
export const MAIL_TIMEOUT_MS = 45_000

/**
 * Mails that ask for a decision. It starts no workflow: a mail is one call, and its row has the attempts. After a crash
 * the lease ends and the mail is sent again, with the same Message-ID.
 */
export function approvalMailsQueue({
  db,
  mailer,
  publicUrl,
  approvalLink,
}: MailDeps & { db: Database }): Queue<ClaimedMail> {
  const attempt = async (mail: ClaimedMail): Promise<MailOutcome> => {
    const approval = await db.tenant(mail.organization_id, SYSTEM, (tx) => findMailedApproval(tx, mail))
    if (!approval) return { status: 'needless' }
    if (!mailer) return unset('SMTP_URL')
    if (!publicUrl) return unset('PUBLIC_URL')
    const { organization_id, run_id, approval_id: id } = mail
    const link = approvalLink({ organization_id, run_id, id })
    return mailApproval(mailer, mail, { ...approval, link }, AbortSignal.timeout(MAIL_TIMEOUT_MS))
  }
  return {
    name: 'approval mails',
    channel: 'agx_mails',
    claim: claimMails,
    async start(_client, mail) {
      const outcome = await attempt(mail)
      await db.tenant(mail.organization_id, SYSTEM, (tx) => recordMail(tx, mail, outcome))
    },
  }
}

export const unset = (setting: string): MailOutcome => ({
  status: 'failed',
  problem: `The service cannot send the link: its operator has not set ${setting}.`,
  retryable: false,
})
