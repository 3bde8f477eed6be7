import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { valueAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Events of mails and of contacts. The contact is the recipient: `from` is the account's owner. */
export const resend: Sender = {
  name: 'Resend',
  documentation: 'https://resend.com/docs/dashboard/webhooks/introduction',
  verification: { type: 'svix' },
  person: 'the recipient; never the sender of the mail',
  deliveryHeader: 'svix-id',
  matches: ({ payload: { type, data } }) =>
    isObject(data) &&
    ((/^email\./.test(String(type)) && typeof data.email_id === 'string') ||
      (/^contact\./.test(String(type)) && data.audience_id !== undefined)),
  optsOut: ({ payload }) =>
    payload.type === 'email.complained' || valueAt(payload, 'data.unsubscribed') === true,
  fields: {
    contacts: {
      email: ['data.email'],
      first_name: ['data.first_name'],
      last_name: ['data.last_name'],
    },
  },
  // Nothing says which of several recipients it is about.
  primaryPaths: ({ payload }) => {
    const to = valueAt(payload, 'data.to')
    return Array.isArray(to) && to.length === 1 ? { email: ['data.to[0]'] } : {}
  },
}
