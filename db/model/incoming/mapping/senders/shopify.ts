import { valueAt } from '../path.ts'
import { addressAt, type Sender } from './types.ts'

const ADDRESSES = ['default_address', 'customer.default_address', 'billing_address', 'shipping_address']

const inAddresses = (name: string) => ADDRESSES.map((path) => `${path}.${name}`)

/** Customers, and orders with their customer. `state` is that of the account, not of an address. */
export const shopify = {
  name: 'Shopify',
  documentation: 'https://shopify.dev/docs/apps/build/webhooks/subscribe/https',
  verification: { type: 'shopify' },
  person: 'the customer',
  deliveryHeader: 'x-shopify-webhook-id',
  matches: ({ headers, payload }) =>
    headers['x-shopify-topic'] !== undefined ||
    typeof payload.admin_graphql_api_id === 'string' ||
    (payload.verified_email !== undefined && payload.orders_count !== undefined),
  // A request to erase the data of a customer, or to show it, has their address.
  isNotice: ({ headers, payload }) =>
    /^customers\/(redact|data_request|delete)$/.test(headers['x-shopify-topic'] ?? '') ||
    payload.orders_to_redact !== undefined ||
    payload.data_request !== undefined,
  optsOut: ({ payload }) =>
    ['email_marketing_consent.state', 'customer.email_marketing_consent.state'].some(
      (path) => valueAt(payload, path) === 'unsubscribed',
    ),
  fields: {
    contacts: {
      first_name: ['first_name', 'customer.first_name', ...inAddresses('first_name')],
      last_name: ['last_name', 'customer.last_name', ...inAddresses('last_name')],
      email: ['email', 'customer.email', 'contact_email'],
      phone: ['phone', 'customer.phone', ...inAddresses('phone')],
      company_name: inAddresses('company'),
      // The tags of an order are not those of its customer, who has `verified_email`.
      tags: ['customer.tags'],
      ...addressAt(ADDRESSES, {
        line1: 'address1',
        line2: 'address2',
        city: 'city',
        state: 'province',
        postal_code: 'zip',
        country: 'country',
      }),
    },
    companies: { name: inAddresses('company') },
    deals: {
      name: ['name'],
      amount: ['total_price'],
      currency: ['currency'],
      company_name: inAddresses('company'),
    },
  },
} satisfies Sender

/** The customer as the payload itself. */
export const shopifyCustomer: Sender = {
  ...shopify,
  matches: (request) =>
    shopify.matches(request) &&
    (request.headers['x-shopify-topic']?.startsWith('customers/') ??
      request.payload.verified_email !== undefined),
  fields: {
    contacts: { ...shopify.fields.contacts, tags: ['tags'], note_content: ['note'] },
    companies: shopify.fields.companies,
  },
}
