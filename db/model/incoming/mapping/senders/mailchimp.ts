import { valueAt } from '../path.ts'
import { addressAt, type Sender } from './types.ts'

/** Changes of an audience, as a form: `type=unsubscribe&data[email]=…&data[merges][FNAME]=…`. */
export const mailchimp: Sender = {
  name: 'Mailchimp',
  documentation: 'https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/',
  verification: { type: 'token' },
  person: 'the subscriber',
  // Each body has the time of its event: an equal one is a retry.
  dedupeWindow: 86_400,
  matches: ({ payload }) =>
    typeof payload.type === 'string' &&
    payload.fired_at !== undefined &&
    valueAt(payload, 'data.list_id') !== undefined,
  // An address that bounces (`cleaned` without `abuse`) did not opt out.
  optsOut: ({ payload }) =>
    payload.type === 'unsubscribe' ||
    (payload.type === 'cleaned' && valueAt(payload, 'data.reason') === 'abuse'),
  fields: {
    contacts: {
      email: ['data.email', 'data.new_email'],
      first_name: ['data.merges.FNAME'],
      last_name: ['data.merges.LNAME'],
      phone: ['data.merges.PHONE'],
      company_name: ['data.merges.COMPANY'],
      ...addressAt(['data.merges.ADDRESS'], {
        line1: 'addr1',
        line2: 'addr2',
        city: 'city',
        state: 'state',
        postal_code: 'zip',
        country: 'country',
      }),
    },
  },
  guessIn: ['data.merges'],
}
