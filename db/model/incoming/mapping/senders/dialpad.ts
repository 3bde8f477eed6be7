import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

const of = (name: string) => [`contact.${name}`]

/** Calls and messages, each with the contact and the `target`, who is a user or a department of the account. */
export const dialpad: Sender = {
  name: 'Dialpad',
  documentation: 'https://developers.dialpad.com/docs/event-subscriptions',
  verification: { type: 'dialpad' },
  person: 'the contact; never the target, who is of the account',
  matches: ({ payload: { call_id, state, from_number, to_number, contact, target } }) =>
    isObject(target) &&
    isObject(contact) &&
    ((call_id !== undefined && typeof state === 'string') ||
      (from_number !== undefined && to_number !== undefined)),
  fields: {
    contacts: {
      full_name: of('name'),
      email: of('email'),
      phone: [...of('phone'), ...of('phone_number')],
    },
  },
}
