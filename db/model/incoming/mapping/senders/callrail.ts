import type { Sender } from './types.ts'

const of = (name: string) => [`customer_${name}`]

/** Calls and messages with the caller. The company is that of the account, and the agent is ours. */
export const callrail: Sender = {
  name: 'CallRail',
  documentation: 'https://apidocs.callrail.com/#webhooks',
  verification: {
    type: 'hmac',
    header: 'Signature',
    algorithm: 'sha1',
    encoding: 'base64',
    prefix: '',
  },
  person: 'the caller; never the agent',
  // A call that has changed has another body: only at once is an equal one a retry.
  dedupeWindow: 300,
  matches: ({ payload }) =>
    payload.resource_id !== undefined &&
    payload.company_id !== undefined &&
    'customer_phone_number' in payload,
  fields: {
    contacts: {
      full_name: of('name'),
      phone: of('phone_number'),
      'address.city': of('city'),
      'address.state': of('state'),
      'address.country': of('country'),
    },
  },
}
