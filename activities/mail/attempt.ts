import type { MailOutcome } from '../../db/queue/mails.ts'
import type { MailMessage } from '../../workflows/effects/mail.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import type { Mailer } from './mailer.ts'

/** One attempt to send a plain text to one address. `key` determines the Message-ID, the same in each attempt. */
export async function attemptMail(
  mailer: Mailer,
  { address, ...message }: Pick<MailMessage, 'key' | 'subject' | 'text'> & { address: string },
  signal: AbortSignal,
): Promise<MailOutcome> {
  try {
    await mailer.send({ ...message, to: [{ name: '', address }], cc: [], bcc: [] }, signal)
    return { status: 'sent' }
  } catch (error) {
    if (error instanceof NodeError)
      return { status: 'failed', problem: error.message, retryable: error.retryable }
    if (signal.aborted)
      return { status: 'failed', problem: 'The mail server did not answer in time.', retryable: true }
    throw error
  }
}
