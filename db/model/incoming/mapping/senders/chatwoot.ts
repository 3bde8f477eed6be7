import { isObject } from '../../../../../workflows/shared/is-object.ts'
import type { Sender } from './types.ts'

/** The contact of a message, of a conversation, of a widget, and an event of the contact itself. */
const of = (name: string) => [
  `conversation.meta.sender.${name}`,
  `meta.sender.${name}`,
  `contact.${name}`,
  name,
]

/** Contacts, conversations and messages. The `sender` of a message, and the assignee of a conversation, may be ours. */
export const chatwoot: Sender = {
  name: 'Chatwoot',
  documentation: 'https://www.chatwoot.com/hc/user-guide/articles/1677693021-how-to-use-webhooks',
  verification: { type: 'chatwoot' },
  person: 'the contact of the conversation; never the agent',
  deliveryHeader: 'x-chatwoot-delivery',
  matches: ({ headers, payload: { event, account } }) =>
    headers['x-chatwoot-signature'] !== undefined ||
    (typeof event === 'string' &&
      /^(contact|conversation|message)_|^webwidget_triggered$/.test(event) &&
      isObject(account)),
  fields: {
    contacts: {
      full_name: of('name'),
      email: of('email'),
      phone: of('phone_number'),
      company_name: of('additional_attributes.company_name'),
      'address.city': of('additional_attributes.city'),
      'address.country': of('additional_attributes.country'),
    },
  },
}
