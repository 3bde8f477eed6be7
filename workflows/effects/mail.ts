import type { Mailbox } from '../shared/mailbox.ts'
import { listed, type Port } from './define.ts'

/** Mails through the SMTP server of the service. */
export interface Mail {
  /** Throws NodeError unless the server has accepted the mail for at least one recipient. */
  send(mail: MailMessage): Promise<MailReceipt>
}

export interface MailMessage {
  /** The source of the Message-ID, the same for each attempt to send this mail. */
  key: string
  /** The sender's display name, to which the mail adds that of the service. */
  fromName?: string | undefined
  to: Mailbox[]
  cc: Mailbox[]
  bcc: Mailbox[]
  replyTo?: Mailbox | undefined
  subject: string
  text?: string | undefined
  html?: string | undefined
  /** The link that unsubscribes the only recipient. */
  unsubscribe?: string | undefined
  attachments?: Attachment[] | undefined
}

export interface Attachment {
  file_id: string
  /** Default: the name of the file. */
  name?: string | undefined
}

export interface MailReceipt {
  message_id: string
  /** The addresses that the server has accepted, and those that it has refused. */
  accepted: string[]
  rejected: { address: string; reply: string }[]
}

/** The limits of a mail. */
export const MAIL_LIMITS = {
  /** Recipients of to, cc and bcc together. */
  recipients: 50,
  subject: 500,
  /** Characters of the text, and of the HTML, each. */
  body: 262_144,
} as const

export const mail: Port<Mail> = {
  classes: ['external'],
  scoped: false,
  variables: ['SMTP_URL', 'MAIL_FROM'],
  words: {
    send: {
      call: ({ to, cc, bcc, attachments = [] }) =>
        [
          `sending a mail to ${addressesOf([...to, ...cc, ...bcc])}`,
          ...listed(
            'attachments',
            attachments.map(({ file_id }) => file_id),
          ),
        ].join(', '),
      result: ({ message_id, accepted, rejected }) =>
        [
          `sent ${message_id} to ${accepted.length} addresses`,
          ...(rejected.length > 0 ? [`${rejected.length} were refused`] : []),
        ].join(', '),
    },
  },
}

const SHOWN = 5

function addressesOf(mailboxes: Mailbox[]): string {
  const shown = mailboxes.slice(0, SHOWN).map(({ address }) => address)
  const others = mailboxes.length - shown.length
  return others > 0 ? `${shown.join(', ')} and ${others} more` : shown.join(', ')
}
