import type { Mailer } from '../../activities/mail/mailer.ts'
import { describeLimit, takeRecipients } from '../../db/mails/allowance.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { type MailOutcome, type MailTable, type RecordedMail, renewLeases } from '../../db/queue/mails.ts'
import type { Queue as LeasedQueue } from '../../db/queue/queue.ts'
import type { Queue } from '../relay.ts'

export interface MailDeps {
  db: Database
  /** Undefined if the service cannot send mails. */
  mailer: Mailer | undefined
  /** Without it a link is only a path, which no mail can use. */
  publicUrl: string | undefined
  /** Told what became of a mail, and of which queue it is. */
  onMail?: ((queue: string, outcome: RecordedMail) => void) | undefined
}

/** Sends one mail. `signal` ends the attempt. */
export type Send = (mailer: Mailer, publicUrl: string, signal: AbortSignal) => Promise<MailOutcome>

/** Less than the time limit of the relay's starts. */
const ATTEMPT_TIMEOUT_MS = 45_000

/**
 * A queue of mails. It starts no workflow: a mail is one call, and its row has the attempts. After a crash the lease,
 * which is renewed while the mail is sent, ends within seconds, and it is sent again, with the same Message-ID.
 */
export function mailsQueue<Mail extends { organization_id: string; id: string; attempts: number }>(
  { db, mailer, publicUrl, onMail }: MailDeps,
  {
    name,
    table,
    queue,
    prepare,
    record,
    isCounted = () => true,
  }: {
    name: string
    table: MailTable
    queue: LeasedQueue<Mail>
    /** @returns how to send the mail, or its outcome if it need not or cannot be sent. */
    prepare(mail: Mail): Promise<Send | MailOutcome>
    record(tx: Tenant, mail: Mail, outcome: MailOutcome): Promise<RecordedMail>
    /** Whether it counts among the recipients that the plan of its organization allows. Default: it does. */
    isCounted?(mail: Mail): boolean
  },
): Queue<Mail> {
  const attempt = async (mail: Mail): Promise<MailOutcome> => {
    const send = await prepare(mail)
    if (typeof send !== 'function') return send
    if (!mailer) return unset('SMTP_URL')
    if (!publicUrl) return unset('PUBLIC_URL')
    const { organization_id: organizationId, id: key } = mail
    const allowance =
      isCounted(mail) && (await takeRecipients(db.system, { organizationId, key, recipients: 1 }))
    if (allowance && !allowance.granted)
      return { status: 'waits', problem: `It waits: ${describeLimit(allowance)}.`, until: allowance.until }
    return send(mailer, publicUrl, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS))
  }
  const sending = new Set<Mail>()
  return {
    name,
    channel: 'agx_mails',
    claim: queue.claim,
    async start(_client, mail) {
      sending.add(mail)
      const outcome = await attempt(mail).finally(() => sending.delete(mail))
      const recorded = await db.tenant(mail.organization_id, SYSTEM, (tx) => record(tx, mail, outcome))
      onMail?.(name, recorded)
    },
    async beat(system) {
      if (sending.size > 0) await renewLeases(system, table, [...sending])
    },
  }
}

/** The outcome of a mail to a suppressed address. */
export const NOT_WANTED: MailOutcome = {
  status: 'failed',
  problem: 'The address gets no mails: it has unsubscribed, bounced, or complained.',
  retryable: false,
}

const unset = (variable: string): MailOutcome => ({
  status: 'failed',
  problem: `The service cannot send the mail: its operator has not set ${variable}.`,
  retryable: false,
})
