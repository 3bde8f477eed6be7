import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { getSystemErrorName } from 'node:util'
import { createTransport, type NodemailerError } from 'nodemailer'
import { AppError } from '../../db/model/errors.ts'
import type { MailMessage, MailReceipt } from '../../workflows/effects/mail.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { type Mailbox, parseMailbox } from '../../workflows/shared/mailbox.ts'
import { Redactor } from '../../workflows/shared/redactor.ts'
import { plainName } from './plain-name.ts'

/** Sends mails through the SMTP server of the service, whose operator is trusted. */
export interface Mailer {
  /** Throws NodeError, or the reason of `signal`. */
  send(message: OpenedMail, signal: AbortSignal): Promise<MailReceipt>
}

/** A mail whose attachments can be read. */
export type OpenedMail = Omit<MailMessage, 'attachments'> & { attachments?: AttachedFile[] }

export interface AttachedFile {
  name: string
  type: string
  content(): Readable
}

/** Limits of the steps of a connection; the timeout of the node limits all together. */
const TIMEOUTS = { connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 30_000 }

/** The mailer; undefined without SMTP_URL. Options in the query of the URL override those here. */
export function createMailer(config: {
  SMTP_URL?: string | undefined
  MAIL_FROM?: string | undefined
}): Mailer | undefined {
  const { SMTP_URL: url, MAIL_FROM: sender } = config
  const from = parseMailbox(sender ?? '')
  if (!url || !from) return undefined
  const { username, password, protocol } = new URL(url)
  const redactor = new Redactor([username, password].map(decodeURIComponent))
  const transport = createTransport({
    url,
    // Otherwise an attacker who removes STARTTLS from the server's answer gets the password in plain text.
    requireTLS: protocol === 'smtp:' && username !== '',
    ...TIMEOUTS,
  })
  return {
    async send(
      { key, fromName, to, cc, bcc, replyTo, subject, text, html, unsubscribe, attachments = [] },
      signal,
    ) {
      signal.throwIfAborted()
      const messageId = messageIdOf(key, from)
      const message = {
        from: { ...from, name: senderName(fromName, from) },
        to,
        cc,
        bcc,
        messageId,
        signal,
        subject: oneLine(subject),
        ...(replyTo && { replyTo }),
        ...(text && { text }),
        ...(html && { html }),
        attachments: attachments.map(({ name, type, content }) => ({
          filename: name,
          contentType: type,
          content: content(),
        })),
        // Stops automatic replies (RFC 3834).
        headers: {
          'Auto-Submitted': 'auto-generated',
          // RFC 8058: mail programs unsubscribe by one click.
          ...(unsubscribe && {
            'List-Unsubscribe': `<${unsubscribe}>`,
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
          }),
        },
        // The tenant's texts must not attach files or URLs.
        disableFileAccess: true,
        disableUrlAccess: true,
      }
      const reply = (error: NodemailerError) => redactor.text(replyOf(error))
      const sent = await transport.sendMail(message).catch((error: NodemailerError) => {
        signal.throwIfAborted()
        // An attachment could not be read.
        if (error instanceof AppError) throw error
        throw explain(error, reply)
      })
      const refusals: NodemailerError[] = sent.rejectedErrors ?? []
      return {
        message_id: messageId,
        accepted: sent.accepted.map(String),
        rejected: refusals.map((error) => ({ address: error.recipient ?? '', reply: reply(error) })),
      }
    },
  }
}

/** The Message-ID, the same for each attempt. The key is hashed: it has characters that a Message-ID must not have. */
const messageIdOf = (key: string, { address }: Mailbox) =>
  `<${createHash('sha256').update(key).digest('hex').slice(0, 32)}@${address.split('@')[1]}>`

/** What a tenant writes never stands alone, and never looks like an address: it could name another sender. */
function senderName(name: string | undefined, { name: own, address }: Mailbox): string {
  const plain = plainName(name ?? '').slice(0, 64)
  return plain === '' ? oneLine(own) : `${plain} via ${oneLine(own || address.split('@')[1]!)}`
}

const oneLine = (text: string) => text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim()

/** The server's reply only: the message of a login error holds credentials. */
const replyOf = ({ response, code }: NodemailerError) => oneLine(response ?? code ?? 'no reply').slice(0, 300)

/** The system error, such as `ECONNREFUSED`: nodemailer replaces the socket's code with its own, `ESOCKET`. */
const systemErrorOf = ({ errno }: NodeJS.ErrnoException) =>
  errno !== undefined && errno < 0 ? getSystemErrorName(errno) : undefined

function explain(error: NodemailerError, reply: (error: NodemailerError) => string): NodeError {
  const { code, responseCode, rejectedErrors = [] } = error
  if (code === 'EAUTH' || code === 'ENOAUTH')
    return new NodeError(
      'mail_login_failed',
      `The mail server refused the login of the service${responseCode ? ` (${responseCode})` : ''}.`,
      { retryable: isTransient(responseCode) },
    )
  if (responseCode === undefined)
    return new NodeError(
      'mail_connection_failed',
      `The connection to the mail server failed: ${systemErrorOf(error) ?? code ?? 'unknown'}.`,
      { retryable: true },
    )
  // Nobody has received the mail: another attempt may reach the recipients that the server deferred.
  const retryable = [error, ...rejectedErrors].some((one) => isTransient(one.responseCode))
  return new NodeError('mail_refused', `The mail server refused the mail: ${reply(error)}`, {
    retryable,
    details: { reply_code: responseCode },
  })
}

const isTransient = (replyCode = 0) => replyCode >= 400 && replyCode < 500
