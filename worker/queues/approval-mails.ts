import { mailApproval } from '../../activities/mail/approval.ts'
import { findSuppressed } from '../../db/mails/suppressions.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import type { ApprovalKey } from '../../db/process/approval-links.ts'
import {
  approvalMails,
  type ClaimedMail,
  findMailedApproval,
  recordMail,
} from '../../db/runs/approval-mails.ts'
import type { Queue } from '../relay.ts'
import { type MailDeps, mailsQueue, NOT_WANTED } from './mails.ts'

/** Mails that ask for a decision. */
export const approvalMailsQueue = ({
  approvalLink,
  ...deps
}: MailDeps & { approvalLink: (approval: ApprovalKey) => string }): Queue<ClaimedMail> =>
  mailsQueue<ClaimedMail>(deps, {
    name: 'approval mails',
    table: 'approval_mails',
    queue: approvalMails,
    async prepare(mail) {
      const { organization_id, run_id, approval_id: id } = mail
      const approval = await deps.db.tenant(organization_id, SYSTEM, (tx) => findMailedApproval(tx, mail))
      if (!approval) return { status: 'needless' }
      const suppressed = await findSuppressed(deps.db.system, organization_id, [mail.address])
      if (suppressed.size > 0) return NOT_WANTED
      const link = approvalLink({ organization_id, run_id, id })
      return (mailer, _publicUrl, signal) => mailApproval(mailer, mail, { ...approval, link }, signal)
    },
    record: recordMail,
  })
