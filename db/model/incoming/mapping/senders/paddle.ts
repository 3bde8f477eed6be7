import type { Sender } from './types.ts'

/** Customers and subscriptions, mapped by their names. */
export const paddle: Sender = {
  name: 'Paddle',
  documentation: 'https://developer.paddle.com/webhooks/signature-verification',
  verification: { type: 'paddle' },
  deliveryId: ({ payload: { event_id, notification_id } }) =>
    /^ntf_/.test(String(notification_id ?? '')) ? event_id : undefined,
}
