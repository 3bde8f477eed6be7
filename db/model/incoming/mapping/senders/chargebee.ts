import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { valueAt } from '../path.ts'
import { addressAt, type Sender } from './types.ts'

const of = (name: string) => [`content.customer.${name}`]

/** Events of an account, most with the customer. `user` and `source` say who changed it. */
export const chargebee: Sender = {
  name: 'Chargebee',
  documentation: 'https://apidocs.chargebee.com/docs/api/events',
  verification: { type: 'basic', username: 'chargebee' },
  person: 'the customer; never the user who changed it',
  matches: ({ payload: { object, event_type, content } }) =>
    object === 'event' && typeof event_type === 'string' && isObject(content),
  deliveryId: ({ payload }) => payload.id,
  isNotice: ({ payload }) => valueAt(payload, 'content.customer') === undefined,
  fields: {
    contacts: {
      first_name: of('first_name'),
      last_name: of('last_name'),
      email: of('email'),
      phone: of('phone'),
      company_name: of('company'),
      ...addressAt(of('billing_address'), {
        line1: 'line1',
        city: 'city',
        state: 'state',
        postal_code: 'zip',
        country: 'country',
      }),
    },
  },
}
