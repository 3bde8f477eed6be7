import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

const of = (name: string) => [`freshdesk_webhook.ticket_${name}`]

/** Tickets, from automation rules: the requester is the contact, never the agent. */
export const freshdesk: Sender = {
  name: 'Freshdesk',
  documentation: 'https://support.freshdesk.com/support/solutions/articles/132589',
  verification: { type: 'secret' },
  person: 'the requester; never the agent',
  matches: ({ payload }) => isObject(payload.freshdesk_webhook),
  // Its last attempt is 95 minutes after the first.
  dedupeWindow: 7_200,
  fields: {
    contacts: {
      full_name: of('requester_name'),
      email: of('requester_email'),
      phone: of('requester_phone'),
      company_name: of('company_name'),
    },
    tasks: { title: of('subject'), body: of('description'), external_id: of('id') },
  },
}
