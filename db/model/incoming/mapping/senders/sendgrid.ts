import type { Sender } from './types.ts'

/** What happened to mails, in batches. https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event */
export const sendgrid: Sender = {
  name: 'SendGrid',
  documentation: 'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event',
  verification: { type: 'sendgrid' },
  sendsBatches: true,
  person: 'the recipient',
  matches: ({ payload }) => typeof payload.sg_event_id === 'string',
  deliveryId: ({ payload }) => payload.sg_event_id,
  optsOut: ({ payload }) => ['unsubscribe', 'spamreport'].includes(String(payload.event)),
  fields: { contacts: { email: ['email'] } },
}
