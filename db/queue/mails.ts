import type { System, Tenant } from '../postgres/tenancy.ts'
import { defineQueue, type Queue } from './queue.ts'

/**
 * Tables of mails that the relay sends: each row is its own queue entry, and has the outcome of its attempts. The table
 * has organization_id, id, attempts, due_at, problem, sent_at, ended_at.
 */
export type MailTable = 'approval_mails' | 'account_mails'

/** The relay renews the lease each second while it sends the mail: after its death another one sends it soon. */
const LEASE_SECONDS = 10
/** Mails of one organization in one claim, while others have some too. */
const SLOTS = 8
/** The delays between attempts grow fourfold, from 5 seconds to an hour: the last attempt is after about 8 hours. */
const MAX_ATTEMPTS = 13

/** The mails of a table that are due, which is also their lease. A claim counts the attempt. */
export const mailsIn = <Mail extends object>(
  table: MailTable,
  returning: (keyof Mail & string)[],
): Queue<Mail> =>
  defineQueue<Mail>({
    table,
    key: ['organization_id', 'id'],
    waits: 'ended_at is null and due_at <= now()',
    order: 'due_at, id',
    returning,
    lease: 'due_at',
    seconds: LEASE_SECONDS,
    sets: 'attempts = r.attempts + 1',
    turns: { slots: SLOTS },
  })

/** Extends the leases of mails that are being sent. */
export async function renewLeases(
  system: System,
  table: MailTable,
  mails: readonly { id: string; attempts: number }[],
): Promise<void> {
  await system.raw(
    `update ${table} m set due_at = now() + make_interval(secs => :seconds)
     from jsonb_to_recordset(cast(:mails as jsonb)) as s(organization_id uuid, id uuid, attempts integer)
     where m.organization_id = s.organization_id and m.id = s.id and m.attempts = s.attempts and m.ended_at is null`,
    { seconds: LEASE_SECONDS, mails: JSON.stringify(mails) },
  )
}

/** How an attempt ended; `needless`: what the mail is about had ended; `waits`: it was not made, and is due later. */
export type MailOutcome =
  | { status: 'sent' | 'needless' }
  | { status: 'waits'; problem: string; until: Date }
  | { status: 'failed'; problem: string; retryable: boolean }

/** What became of a mail; `retried`: its attempt failed, and another one follows. */
export type RecordedMail = MailOutcome['status'] | 'retried'

/**
 * Records how an attempt ended. After a failure that may pass, the mail is due again later; otherwise it has ended, and
 * the column `cleared` becomes null.
 */
export async function recordAttempt(
  tx: Tenant,
  table: MailTable,
  mail: { id: string; attempts: number },
  outcome: MailOutcome,
  cleared?: string,
): Promise<RecordedMail> {
  const waits = outcome.status === 'waits'
  const problem = 'problem' in outcome ? outcome.problem : null
  const again = waits || (outcome.status === 'failed' && outcome.retryable && mail.attempts < MAX_ATTEMPTS)
  await tx.trx.raw(
    `update ${table} set problem = :problem,
       due_at = now() + make_interval(secs => :delay),
       attempts = attempts - :uncounted,
       sent_at = case when :sent then now() end,
       ended_at = case when not :again then now() end
       ${cleared ? `, ${cleared} = case when :again then ${cleared} end` : ''}
     where organization_id = :organizationId and id = :id and ended_at is null`,
    {
      organizationId: tx.organizationId,
      id: mail.id,
      problem,
      again,
      sent: outcome.status === 'sent',
      delay: waits ? secondsUntil(outcome.until) : Math.min(5 * 4 ** (mail.attempts - 1), 3_600),
      uncounted: waits ? 1 : 0,
    },
  )
  return outcome.status === 'failed' && again ? 'retried' : outcome.status
}

const secondsUntil = (time: Date): number => Math.max(0, (time.getTime() - Date.now()) / 1_000)
