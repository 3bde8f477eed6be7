import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { textAt, valueAt } from '../path.ts'
import type { Sender } from './types.ts'

/** Changes of contacts, activities, leads (companies) and others. The names in an opportunity make no contact. */
export const close: Sender = {
  name: 'Close',
  documentation: 'https://developer.close.com/api/resources/webhooks',
  verification: { type: 'close' },
  person: 'the contact, also of an activity; never the user',
  matches: ({ payload: { event, subscription_id } }) =>
    typeof subscription_id === 'string' &&
    isObject(event) &&
    typeof event.object_type === 'string' &&
    typeof event.action === 'string',
  deliveryId: ({ payload }) => valueAt(payload, 'event.id'),
  fields: {},
}

// The whole event: a user of the account is told by what is around the data.
const variant = (objects: RegExp, more: Pick<Sender, 'fields' | 'guessIn'>): Sender => ({
  ...close,
  matches: (request) => close.matches(request) && objects.test(textAt(request.payload, 'event.object_type')),
  ...more,
})

export const closeVariants: Sender[] = [
  variant(/^(contact$|activity\.)/, { fields: { contacts: {} }, guessIn: ['event'] }),
  variant(/^lead$/, {
    fields: {
      companies: { name: ['event.data.display_name', 'event.data.name'], website: ['event.data.url'] },
    },
  }),
]
