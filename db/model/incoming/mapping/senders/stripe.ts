import { valueAt } from '../path.ts'
import { addressAt, type KnownPaths, type Sender } from './types.ts'

const OBJECT = 'data.object'

/** Where an event that is not about a customer itself has the customer: a checkout, a charge, an invoice. */
const DETAILS = ['customer_details', 'billing_details', 'shipping']

const ofOthers = (name: string) => [
  ...DETAILS.map((details) => `${OBJECT}.${details}.${name}`),
  `${OBJECT}.customer_${name}`,
]

const ADDRESS = {
  line1: 'line1',
  line2: 'line2',
  city: 'city',
  state: 'state',
  postal_code: 'postal_code',
  country: 'country',
}

const person = (of: (name: string) => string[]): KnownPaths => ({
  full_name: of('name'),
  email: [...of('email'), `${OBJECT}.receipt_email`],
  phone: of('phone'),
  ...addressAt(of('address'), ADDRESS),
})

const organization = (of: (name: string) => string[]): KnownPaths => ({
  name: of('name'),
  email: of('email'),
  phone: of('phone'),
})

/** Events. Amounts are in the smallest unit of the currency, so a deal needs a rule with a conversion. */
export const stripe = {
  name: 'Stripe',
  documentation: 'https://docs.stripe.com/webhooks',
  verification: { type: 'stripe' },
  person: 'the customer',
  matches: ({ headers, payload }) =>
    headers['stripe-signature'] !== undefined ||
    (payload.object === 'event' &&
      typeof payload.type === 'string' &&
      Object.hasOwn(Object(payload.data), 'object')),
  fields: { contacts: person(ofOthers), companies: organization(ofOthers) },
} satisfies Sender

const ofCustomer = (name: string) => [`${OBJECT}.${name}`]

/** Events of a customer: other objects have a `name` too, such as a product. */
export const stripeCustomer: Sender = {
  ...stripe,
  matches: (request) =>
    stripe.matches(request) && valueAt(request.payload, `${OBJECT}.object`) === 'customer',
  fields: { contacts: person(ofCustomer), companies: organization(ofCustomer) },
}
