import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { textAt } from '../path.ts'
import type { Sender } from './types.ts'

/**
 * Events of mails. The contact is the recipient: `envelope.sender` and `message.headers.from` are the account's owner.
 */
export const mailgun: Sender = {
  name: 'Mailgun',
  documentation: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
  verification: { type: 'mailgun' },
  person: 'the recipient; never the sender of the mail',
  matches: ({ payload }) => isObject(payload['event-data']) && isObject(payload.signature),
  deliveryId: ({ payload }) => mailgunEventId(payload),
  optsOut: ({ payload }) => ['unsubscribed', 'complained'].includes(textAt(payload, 'event-data.event')),
  fields: { contacts: { email: ['event-data.recipient'] } },
}

/** The id is unique within a day only. */
export function mailgunEventId(payload: unknown): string | undefined {
  const [id, time] = ['id', 'timestamp'].map((name) => textAt(payload, `event-data.${name}`))
  return id ? `${id} ${time}` : undefined
}
