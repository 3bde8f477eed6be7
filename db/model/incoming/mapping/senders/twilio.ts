import type { Sender } from './types.ts'

/** Messages and calls: a number, but no person. https://www.twilio.com/docs/messaging/guides/webhook-request */
export const twilio: Sender = {
  name: 'Twilio',
  documentation: 'https://www.twilio.com/docs/usage/security',
  verification: { type: 'twilio' },
  matches: ({ headers, payload }) =>
    headers['x-twilio-signature'] !== undefined ||
    (typeof payload.AccountSid === 'string' &&
      (payload.MessageSid !== undefined || payload.CallSid !== undefined)),
  deliveryId: ({ payload }) => payload.MessageSid ?? payload.CallSid,
  isNotice: () => true,
  fields: {},
}
