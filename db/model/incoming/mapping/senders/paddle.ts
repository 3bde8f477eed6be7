import type { Sender, SenderRequest } from './types.ts'

const isPaddle = ({ headers, payload: { notification_id, event_type } }: SenderRequest) =>
  headers['paddle-signature'] !== undefined ||
  (typeof event_type === 'string' && /^ntf_/.test(String(notification_id ?? '')))

/** Transactions, subscriptions and others, which name a customer by its id. */
export const paddle: Sender = {
  name: 'Paddle',
  documentation: 'https://developer.paddle.com/webhooks/signature-verification',
  verification: { type: 'paddle' },
  matches: isPaddle,
  deliveryId: ({ payload: { event_id, notification_id } }) =>
    /^ntf_/.test(String(notification_id ?? '')) ? event_id : undefined,
  fields: {},
}

const variant = (entity: string, fields: NonNullable<Sender['fields']>): Sender => ({
  ...paddle,
  matches: (request) => isPaddle(request) && String(request.payload.event_type).startsWith(`${entity}.`),
  fields,
})

/** The name of a business, or of a product, is not that of a person. */
export const paddleVariants: Sender[] = [
  variant('customer', {
    contacts: { full_name: ['data.name'], email: ['data.email'] },
  }),
  variant('business', { companies: { name: ['data.name'] } }),
]
