import { isObject } from '../../../../../workflows/shared/is-object.ts'
import { addressAt, type Sender } from './types.ts'

const of = (name: string) => [`data.object.customer.${name}`]

/** Events of a seller. Of a payment only the buyer's address is known; bookings and orders name a customer by its id. */
export const square: Sender = {
  name: 'Square',
  documentation: 'https://developer.squareup.com/docs/webhooks/step3validate',
  verification: { type: 'square' },
  person: 'the customer, or the buyer; never the merchant',
  matches: ({ payload: { merchant_id, type, event_id, data } }) =>
    typeof merchant_id === 'string' &&
    typeof type === 'string' &&
    typeof event_id === 'string' &&
    isObject(data),
  deliveryId: ({ payload }) => payload.event_id,
  fields: {
    contacts: {
      first_name: of('given_name'),
      last_name: of('family_name'),
      email: [...of('email_address'), 'data.object.payment.buyer_email_address'],
      phone: of('phone_number'),
      company_name: of('company_name'),
      note_content: of('note'),
      ...addressAt(of('address'), {
        line1: 'address_line_1',
        line2: 'address_line_2',
        city: 'locality',
        state: 'administrative_district_level_1',
        postal_code: 'postal_code',
        country: 'country',
      }),
    },
  },
}
