import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** What happened to messages and customers (reporting webhooks). */
export const customerio: Sender = {
  name: 'Customer.io',
  documentation: 'https://docs.customer.io/journeys/webhooks/',
  verification: { type: 'customerio' },
  person: 'the recipient, or the customer',
  matches: ({ payload: { event_id, object_type, metric, data } }) =>
    typeof event_id === 'string' &&
    typeof object_type === 'string' &&
    typeof metric === 'string' &&
    isObject(data),
  deliveryId: ({ payload }) => payload.event_id,
  optsOut: ({ payload }) => ['unsubscribed', 'spammed'].includes(String(payload.metric)),
  fields: {
    contacts: {
      email: ['data.identifiers.email', 'data.email_address', 'data.recipient'],
      external_id: ['data.identifiers.id'],
    },
  },
}
