import type { Sender } from './types.ts'

/** Contacts have their own events, others name them: of a call, with `user` who answered, and `number` the line. */
const of = (name: string) => [`data.contact.${name}`, `data.${name}`]

/** Calls, messages and contacts. An event without a contact says nothing of a person. */
export const aircall: Sender = {
  name: 'Aircall',
  documentation: 'https://developer.aircall.io/api-references/#webhook-usage',
  verification: { type: 'token' },
  person: 'the contact; never the user who has answered',
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
  matches: ({ payload: { resource, event, timestamp, token, data } }) =>
    typeof resource === 'string' &&
    String(event).startsWith(`${resource}.`) &&
    timestamp !== undefined &&
    token !== undefined &&
    data !== undefined,
  // The token that Aircall gives the webhook.
  secretFields: ['token'],
  isNotice: ({ payload }) => payload.resource !== 'contact' && !Object(payload.data).contact,
  fields: {
    contacts: {
      first_name: of('first_name'),
      last_name: of('last_name'),
      company_name: of('company_name'),
      email: of('emails[0].value'),
      phone: of('phone_numbers[0].value'),
    },
  },
}
