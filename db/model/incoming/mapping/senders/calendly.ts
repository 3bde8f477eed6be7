import type { Sender } from './types.ts'

const of = (name: string) => [`payload.${name}`, `payload.invitee.${name}`]

/** Invitees of a booking, with the questions that the host chose. */
export const calendly: Sender = {
  name: 'Calendly',
  documentation: 'https://developer.calendly.com/api-docs/4c305798a61d3-webhook-signatures',
  verification: { type: 'calendly' },
  person: 'the invitee; never the host',
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
  matches: ({ headers, payload }) =>
    headers['calendly-webhook-signature'] !== undefined ||
    (typeof payload.event === 'string' && /^invitee\./.test(payload.event)),
  fields: {
    contacts: {
      full_name: of('name'),
      first_name: of('first_name'),
      last_name: of('last_name'),
      email: of('email'),
      phone: of('text_reminder_number'),
      timezone: of('timezone'),
    },
  },
  guessIn: ['payload.questions_and_answers'],
}
