import { v7 as uuidv7 } from 'uuid'
import type { ApprovalRequest } from '../../workflows/nodes/wait-for.ts'
import { membersByIds } from '../access/members.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type MailOutcome, mailsIn, type RecordedMail, recordAttempt } from '../queue/mails.ts'

/** Mails that ask for a decision. Their rows are the queue; they are deleted with their run. */

/** The events of an approval. All but the last are mailed to its assignees. */
export type ApprovalEventName =
  | 'approval.requested'
  | 'approval.reminder'
  | 'approval.escalated'
  | 'approval.answered'

export type MailedEvent = Exclude<ApprovalEventName, 'approval.answered'>

/**
 * Queues the mails of an approval, one to each address, in the transaction that opens the approval or raises the events.
 */
export async function insertApprovalMails(
  tx: Tenant,
  approval: Pick<ApprovalRequest, 'assignees' | 'escalate_to'> & { id: string; run_id: string },
  events: Iterable<MailedEvent>,
): Promise<void> {
  const users = await emailsOf(tx, approval.assignees)
  const rows = [...events].flatMap((event) =>
    addressesOf(approval, event, users).map((address) => ({
      organization_id: tx.organizationId,
      id: uuidv7(),
      run_id: approval.run_id,
      approval_id: approval.id,
      event,
      address,
    })),
  )
  if (rows.length === 0) return
  await tx.trx('approval_mails').insert(rows)
  tx.wake('agx_mails')
}

/** The distinct addresses of the assignees; `users`: of the members among them, by id. */
function addressesOf(
  { assignees, escalate_to }: Pick<ApprovalRequest, 'assignees' | 'escalate_to'>,
  event: MailedEvent,
  users: ReadonlyMap<string, string>,
): string[] {
  const recipients = event === 'approval.escalated' && escalate_to.length > 0 ? escalate_to : assignees
  const addresses = recipients.map((one) => users.get(one.toLowerCase()) ?? one)
  return [...new Map(addresses.map((text) => [text.toLowerCase(), text])).values()].filter((text) =>
    text.includes('@'),
  )
}

async function emailsOf(tx: Tenant, assignees: string[]): Promise<Map<string, string>> {
  const ids = assignees.map((one) => one.toLowerCase()).filter((one) => !one.includes('@'))
  return new Map((await membersByIds(tx, ids)).map(({ id, email }) => [id, email]))
}

/** A claimed mail. */
export interface ClaimedMail {
  organization_id: string
  id: string
  run_id: string
  approval_id: string
  event: MailedEvent
  address: string
  /** Number of attempts, including this one. */
  attempts: number
}

/** The queue of approval mails. */
export const approvalMails = mailsIn<ClaimedMail>('approval_mails', [
  'run_id',
  'approval_id',
  'event',
  'address',
  'attempts',
])

/** The content of a mail. */
export interface MailedApproval {
  title: string
  message: string | null
  workflow_name: string
  expires_at: Date | null
}

/** The approval of a mail while it can be answered; undefined afterwards. */
export async function findMailedApproval(
  tx: Tenant,
  { run_id, approval_id }: ClaimedMail,
): Promise<MailedApproval | undefined> {
  const { rows } = await tx.trx.raw<{ rows: MailedApproval[] }>(
    `select w.settings ->> 'title' as title, w.settings ->> 'message' as message, r.workflow_name, w.expires_at
     from run_waits w join runs r on r.organization_id = w.organization_id and r.id = w.run_id
     where w.organization_id = ? and w.id = ? and w.run_id = ? and w.type = 'decision' and w.answered_at is null
       and (w.expires_at is null or w.expires_at > now())`,
    [tx.organizationId, approval_id, run_id],
  )
  return rows[0]
}

/** Records the result of an attempt. */
export const recordMail = (tx: Tenant, mail: ClaimedMail, outcome: MailOutcome): Promise<RecordedMail> =>
  recordAttempt(tx, 'approval_mails', mail, outcome)

/** A mail as its approval shows it. */
export interface ShownMail {
  approval_id: string
  event: MailedEvent
  address: string
  sent_at: Date | null
  problem: string | null
}

/** The mails of these approvals of a run, in the order in which they were queued. */
export const listMails = (tx: Tenant, runId: string, approvalIds: string[]): Promise<ShownMail[]> =>
  tx
    .trx('approval_mails')
    .where({ organization_id: tx.organizationId, run_id: runId })
    .whereIn('approval_id', approvalIds)
    .orderBy('id')
    .select<ShownMail[]>('approval_id', 'event', 'address', 'sent_at', 'problem')
