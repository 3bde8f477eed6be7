import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** The booker is the first attendee; also of meetings, whose booking is the body itself. */
const of = (name: string) => [`payload.attendees[0].${name}`, `attendees[0].${name}`]
const answered = (name: string) => [`payload.responses.${name}.value`, `responses.${name}.value`]

/** Bookings, and routing forms: the attendee is the contact, never the organizer. */
export const calcom: Sender = {
  name: 'Cal.com',
  documentation: 'https://cal.com/docs/developing/guides/automation/webhooks',
  verification: {
    type: 'hmac',
    header: 'X-Cal-Signature-256',
    algorithm: 'sha256',
    encoding: 'hex',
    prefix: '',
  },
  person: 'the first attendee, who booked; never the organizer',
  matches: ({ headers, payload }) =>
    headers['x-cal-signature-256'] !== undefined ||
    (typeof payload.triggerEvent === 'string' &&
      (isObject(payload.payload) || Array.isArray(payload.attendees))),
  // The request of "Ping test" names a made-up attendee.
  isPing: ({ payload }) => payload.triggerEvent === 'PING',
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
  fields: {
    contacts: {
      email: [...answered('email'), ...of('email')],
      full_name: [...answered('name'), ...of('name')],
      first_name: [
        'payload.responses.name.value.firstName',
        'responses.name.value.firstName',
        ...of('firstName'),
      ],
      last_name: [
        'payload.responses.name.value.lastName',
        'responses.name.value.lastName',
        ...of('lastName'),
      ],
      phone: [...answered('attendeePhoneNumber'), ...of('phoneNumber')],
      timezone: of('timeZone'),
      note_content: [...answered('notes'), 'payload.additionalNotes', 'additionalNotes'],
    },
  },
  guessIn: ['payload.responses', 'responses'],
}
