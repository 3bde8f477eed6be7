import type { Sender } from './types.ts'

/** The id of a payment or of another object, whose state the account's owner asks for; also an event that names one. */
export const mollie: Sender = {
  name: 'Mollie',
  documentation: 'https://docs.mollie.com/reference/webhooks',
  verification: { type: 'token' },
  // Each state of an object is told by the same body: only at once is an equal one a retry.
  dedupeWindow: 10,
  matches: ({ payload }) =>
    (Object.keys(payload).length === 1 &&
      /^(tr|ord|sub|mdt|pl|re|chb|stl|cst)_\w+$/.test(String(payload.id))) ||
    (payload.resource === 'event' &&
      typeof payload.entityId === 'string' &&
      String(payload.id).startsWith('event_')),
  isNotice: () => true,
  fields: {},
}
