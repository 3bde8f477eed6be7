import { Readable } from 'node:stream'
import { describeLimit, takeRecipients } from '../../db/mails/allowance.ts'
import { findSuppressed } from '../../db/mails/suppressions.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { getFile } from '../../db/stored-files/files.ts'
import type { FileStore } from '../../db/stored-files/store.ts'
import { ports } from '../../workflows/effects/index.ts'
import type { Attachment, Mail, MailMessage } from '../../workflows/effects/mail.ts'
import { MAIL_TURN, NodeError } from '../../workflows/language/node-error.ts'
import { FILES } from '../../workflows/shared/limits.ts'
import type { Mailbox } from '../../workflows/shared/mailbox.ts'
import type { AttachedFile, Mailer } from '../mail/mailer.ts'
import { whenAvailable } from '../when-available.ts'
import type { EffectHost } from './define.ts'
import { transactionsOf } from './transactions.ts'

export interface MailDeps {
  mailer?: Mailer | undefined
  /** Reads suppressed addresses, and counts recipients. */
  db?: Database | undefined
  /** Reads the contents of attached files. */
  files?: FileStore | undefined
  /** The seconds of a minute of the limits, for tests. */
  mailMinute?: number | undefined
  /** The link in the header of a mail to one address; absent without PUBLIC_URL. */
  unsubscribeLink?: ((organizationId: string, address: string) => string) | undefined
}

/**
 * Sends with the cancellation of the attempt, within the limits of the organization's plan, and to nobody who does not
 * want it. Throws NodeError: `mail_not_configured` if there is no SMTP server, `mail_suppressed` if no recipient is left,
 * `mail_rate_limited` above the limit of a minute, after which the node waits, `mail_quota_exceeded` above that of a day.
 */
export const mailOf = (
  { mailer, db, files, unsubscribeLink, mailMinute }: MailDeps,
  host: EffectHost,
): Mail => ({
  async send({ attachments = [], ...message }) {
    const { signal, organizationId } = host
    if (!mailer) throw notConfigured()
    if (!db) throw new Error('this process has no database')
    const all = [...message.to, ...message.cc, ...message.bcc]
    const addresses = all.map(({ address }) => address)
    const suppressed = await available(host, () => findSuppressed(db.system, organizationId, addresses))
    const reasonOf = ({ address }: Mailbox) => suppressed.get(address.toLowerCase())
    const wanted = (list: Mailbox[]) => list.filter((one) => !reasonOf(one))
    const left: Omit<MailMessage, 'attachments'> = {
      ...message,
      to: wanted(message.to),
      cc: wanted(message.cc),
      bcc: wanted(message.bcc),
    }
    const recipients = [...left.to, ...left.cc, ...left.bcc]
    const refused = all.flatMap((one) => {
      const reason = reasonOf(one)
      return reason ? [{ address: one.address, reply: `not sent: the address ${REASONS[reason]}` }] : []
    })
    const [only] = recipients
    if (!only)
      throw new NodeError('mail_suppressed', `No recipient wants the mail: ${refused[0]!.reply}.`, {
        details: { rejected: refused },
      })
    // Before the recipients count, too: an attempt without a slot is repeated.
    host.reach('mail')
    // Before the recipients count: a file that is too large is no mail.
    const opened = await open(attachments, { db, files }, host)
    // If the answer is lost, the recipients count twice: the mail itself is sent once.
    await available(host, () =>
      requireAllowance(db, { organizationId, key: message.key, recipients: recipients.length }, mailMinute),
    )
    const link = recipients.length === 1 ? unsubscribeLink?.(organizationId, only.address) : undefined
    const receipt = await mailer.send(
      { ...left, attachments: opened, ...(link && { unsubscribe: link }) },
      signal,
    )
    return { ...receipt, rejected: [...receipt.rejected, ...refused] }
  },
})

/** Waits for a database that is away: an outage uses up no attempt of the node. */
const available = <T>({ log, signal, hold }: EffectHost, work: () => Promise<T>): Promise<T> =>
  whenAvailable({ log, signal, hold }, work)

const REASONS = {
  unsubscribed: 'has unsubscribed',
  bounced: 'has bounced',
  complained: 'has complained about a mail',
  added: 'is suppressed by the organization',
} as const

/** Throws NodeError. */
async function requireAllowance(
  db: Database,
  mail: Parameters<typeof takeRecipients>[1],
  minute: number | undefined,
): Promise<void> {
  const allowance = await takeRecipients(db.system, mail, { minute })
  if (allowance.granted) return
  const { per, until } = allowance
  const at = `${until.toISOString().slice(0, 19).replace('T', ' ')} UTC`
  if (per === 'day')
    throw new NodeError(
      'mail_quota_exceeded',
      `The mail has ${mail.recipients} recipients, and ${describeLimit(allowance)}. The next day begins at ${at}.`,
    )
  throw new NodeError(MAIL_TURN, `The mail waits until ${at}: ${describeLimit(allowance)}.`, {
    waits: true,
    retryAfterMs: Math.max(0, until.getTime() - Date.now()),
  })
}

function notConfigured(): NodeError {
  const variables = ports.mail.variables!.join(' and ')
  return new NodeError(
    'mail_not_configured',
    `The service cannot send mails: its operator has not set ${variables}.`,
  )
}

/** The attached files, whose contents are read while the mail is sent. */
async function open(
  attachments: Attachment[],
  { db, files }: Pick<MailDeps, 'db' | 'files'>,
  host: EffectHost,
): Promise<AttachedFile[]> {
  if (attachments.length === 0) return []
  if (!files) throw new Error('this process reads no files')
  const transact = transactionsOf(db, host)
  const rows = await Promise.all(attachments.map(({ file_id }) => transact((tx) => getFile(tx, file_id))))
  const bytes = rows.reduce((sum, { size }) => sum + size, 0)
  if (bytes > FILES.attachmentBytes)
    throw new NodeError(
      'attachments_too_large',
      `The attachments have ${bytes} bytes together, at most ${FILES.attachmentBytes} are sent: send a link instead.`,
    )
  return rows.map((row, i) => ({
    name: attachments[i]!.name ?? row.name,
    type: row.content_type,
    content: () => Readable.from(lazily(() => files.read(host.organizationId, row))),
  }))
}

/** A content that is opened when its first byte is needed: the mail server may keep the earlier ones for long. */
async function* lazily(open: () => Promise<AsyncIterable<Buffer>>): AsyncGenerator<Buffer, void, void> {
  yield* await open()
}
