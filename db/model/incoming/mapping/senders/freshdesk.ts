import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

const of = (name: string) => [`freshdesk_webhook.ticket_${name}`]

/** Tickets, from automation rules: the requester is the contact, never the agent. */
export const freshdesk: Sender = {
  name: 'Freshdesk',
  documentation: 'https://support.freshdesk.com/support/solutions/articles/132589',
  verification: { type: 'secret' },
  matches: ({ payload }) => isObject(payload.freshdesk_webhook),
  // A rule may run again for the same state of a ticket: only at once is it a retry.
  dedupeWindow: 300,
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
