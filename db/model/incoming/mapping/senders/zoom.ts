import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { textAt } from '../path.ts'
import { addressAt, type Sender } from './types.ts'

const of = (name: string) => [`payload.object.registrant.${name}`]
const ofParticipant = (name: string) => [`payload.object.participant.${name}`]

/** Meetings and webinars: who has registered or has come is the contact, and the users of the account are ours. */
export const zoom: Sender = {
  name: 'Zoom',
  documentation: 'https://developers.zoom.us/docs/api/webhooks/',
  verification: { type: 'zoom' },
  person: 'the registrant, or the participant; never the host',
  matches: ({ headers, payload: { event, event_ts, payload } }) =>
    headers['x-zm-signature'] !== undefined ||
    (typeof event === 'string' && event_ts !== undefined && isObject(payload)),
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
  // The host takes part too.
  isNotice: ({ payload }) => {
    const host = textAt(payload, 'payload.object.host_id')
    return host !== '' && host === textAt(payload, 'payload.object.participant.id')
  },
  fields: {
    contacts: {
      first_name: of('first_name'),
      last_name: of('last_name'),
      full_name: ofParticipant('user_name'),
      email: [...of('email'), ...ofParticipant('email')],
      phone: of('phone'),
      job_title: of('job_title'),
      company_name: of('org'),
      note_content: of('comments'),
      ...addressAt(['payload.object.registrant'], {
        line1: 'address',
        city: 'city',
        state: 'state',
        postal_code: 'zip',
        country: 'country',
      }),
    },
  },
  guessIn: ['payload.object.registrant.custom_questions'],
}
