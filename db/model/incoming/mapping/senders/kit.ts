import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { textAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Subscribers of newsletters (once ConvertKit), with the fields that the owner of the account chose. */
export const kit: Sender = {
  name: 'Kit',
  documentation: 'https://developers.kit.com/api-reference/webhooks/create-a-webhook',
  verification: { type: 'token' },
  person: 'the subscriber',
  // A subscriber may come back to an earlier state: only at once is an equal body a retry.
  dedupeWindow: 300,
  matches: ({ payload: { subscriber } }) =>
    isObject(subscriber) && subscriber.email_address !== undefined && subscriber.state !== undefined,
  optsOut: ({ payload }) => ['cancelled', 'complained'].includes(textAt(payload, 'subscriber.state')),
  fields: { contacts: { email: ['subscriber.email_address'], first_name: ['subscriber.first_name'] } },
  guessIn: ['subscriber.fields'],
}
