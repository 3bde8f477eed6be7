import type { Sender } from './types.ts'

/** What happened to mails of campaigns and of services. `id` is that of the webhook, and `tag` of the mail. */
export const brevo: Sender = {
  name: 'Brevo',
  documentation: 'https://developers.brevo.com/docs/transactional-webhooks',
  verification: { type: 'token' },
  sendsBatches: true,
  person: 'the recipient',
  matches: ({ payload }) =>
    typeof payload.event === 'string' &&
    typeof payload.email === 'string' &&
    (payload['message-id'] !== undefined || payload.camp_id !== undefined),
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
  optsOut: ({ payload }) =>
    ['unsubscribed', 'unsubscribe', 'spam', 'complaint'].includes(String(payload.event)),
  fields: { contacts: { email: ['email'] } },
}
