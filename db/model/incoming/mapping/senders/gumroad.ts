import { textAt } from '../path.ts'
import { addressAt, type Sender } from './types.ts'

/** Sales, as a form. `can_contact` is whether the buyer may be written to. */
export const gumroad: Sender = {
  name: 'Gumroad',
  documentation: 'https://app.gumroad.com/ping',
  verification: { type: 'token' },
  person: 'the buyer; never the seller',
  matches: ({ payload }) =>
    payload.seller_id !== undefined && payload.sale_id !== undefined && payload.permalink !== undefined,
  deliveryId: ({ payload }) =>
    ['resource_name', 'sale_id', 'refunded', 'disputed', 'dispute_won']
      .map((name) => textAt(payload, name))
      .join(' '),
  optsOut: ({ payload }) => String(payload.can_contact) === 'false',
  fields: {
    contacts: {
      email: ['email'],
      full_name: ['full_name'],
      ...addressAt([''], {
        line1: 'street_address',
        city: 'city',
        state: 'state',
        postal_code: 'zip_code',
        country: 'country',
      }),
    },
  },
}
