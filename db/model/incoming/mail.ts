import PostalMime, { type Address, type Email, type Mailbox } from 'postal-mime'
import { blocksOfHtml } from '../knowledge/html.ts'
import { firstCharacters } from '../records/values.ts'
import type { Payload } from './parse-body.ts'
import { itemOf, type SourceItem } from './source.ts'

/** A mail as a mailbox gives it. */
export interface RawMail {
  uid: number
  /** The bytes of the whole mail, of which `content` has the first. */
  size: number
  received_at: string | null
  content: Buffer
}

const TEXT_CHARACTERS = 50_000
const MOST_LISTED = 50

/**
 * A mail as an item of a source. Its sender is the person, by names that the automatic mapping takes: `email`, `name`,
 * `subject`, `message`. It is the same mail if its Message-ID is, also in another mailbox or under another UID. Pure.
 */
export async function itemOfMail(mail: RawMail): Promise<SourceItem> {
  return itemFrom(mail, await parse(mail.content))
}

/** A mail that is not parsed: its text is all of it. */
export const unreadMail = (mail: RawMail): SourceItem => itemFrom(mail, unparsed(mail.content))

function itemFrom(mail: RawMail, parsed: Email): SourceItem {
  const header = (name: string) => parsed.headers.find(({ key }) => key === name)?.value ?? null
  const [sender] = mailboxes([parsed.from])
  const text = parsed.text?.trim() || textOfHtml(parsed.html ?? '')
  const message = firstCharacters(text, TEXT_CHARACTERS)
  const payload: Payload = {
    email: sender?.address ?? null,
    name: sender?.name || null,
    subject: parsed.subject ?? null,
    message,
    message_truncated: message !== text || mail.content.length < mail.size,
    message_id: parsed.messageId ?? null,
    in_reply_to: parsed.inReplyTo ?? null,
    to: mailboxes(parsed.to).map(addressOf),
    cc: mailboxes(parsed.cc).map(addressOf),
    answer_to: mailboxes(parsed.replyTo).map(addressOf),
    date: parsed.date ?? null,
    received_at: mail.received_at,
    attachments: parsed.attachments
      .slice(0, MOST_LISTED)
      .map(({ filename, mimeType }) => ({ file: filename, type: mimeType })),
    // By them a condition tells answers of machines, and lists, from people.
    auto_submitted: header('auto-submitted'),
    list_id: header('list-id'),
    size: mail.size,
    uid: mail.uid,
  }
  const { date, subject, message_id } = payload
  return itemOf(
    payload,
    message_id ? ['mail', message_id] : ['mail', sender?.address, date, subject, mail.size],
  )
}

/** A mail that is no MIME is one without headers: its log entry shows it. */
const parse = (content: Buffer): Promise<Email> =>
  PostalMime.parse(content, { rfc822Attachments: true }).catch(() => unparsed(content))

const unparsed = (content: Buffer): Email => ({
  headers: [],
  headerLines: [],
  attachments: [],
  text: content.toString('latin1'),
})

const mailboxes = (addresses: (Address | undefined)[] = []): Mailbox[] =>
  addresses
    .flatMap((one) => (one === undefined ? [] : one.address === undefined ? one.group : [one]))
    .slice(0, MOST_LISTED)

const addressOf = ({ address }: Mailbox) => address

const textOfHtml = (html: string) =>
  blocksOfHtml(html)
    .map(({ text }) => text)
    .join('\n\n')
