import type { IncomingHttpHeaders } from 'node:http'
import { valueAt } from '../path.ts'
import { addressAt, type Sender, type SenderRequest } from './types.ts'

const isHookshot = (userAgent: unknown) => /^WooCommerce\b/.test(String(userAgent ?? ''))

/** The ping is a form without a signature: `webhook_id=5`. */
const isWooCommercePing = ({ headers, payload }: SenderRequest): boolean =>
  isHookshot(headers['user-agent']) &&
  Object.keys(payload).length === 1 &&
  /^\d{1,10}$/.test(String(payload.webhook_id ?? ''))

/** The same of a request that is not verified, hence not parsed. */
export const isWooCommercePingBody = (headers: IncomingHttpHeaders, bytes: Buffer): boolean =>
  isHookshot(headers['user-agent']) &&
  bytes.length < 32 &&
  /^webhook_id=\d{1,10}$/.test(bytes.toString('latin1'))

/** Customers and orders. `role` is that of an account, not of a person in a company. */
export const woocommerce: Sender = {
  name: 'WooCommerce',
  documentation: 'https://woocommerce.com/document/webhooks/',
  verification: {
    type: 'hmac',
    header: 'X-WC-Webhook-Signature',
    algorithm: 'sha256',
    encoding: 'base64',
    prefix: '',
  },
  person: 'the customer',
  deliveryHeader: 'x-wc-webhook-delivery-id',
  matches: (request) =>
    request.headers['x-wc-webhook-topic'] !== undefined ||
    isWooCommercePing(request) ||
    valueAt(request.payload, 'billing.address_1') !== undefined,
  isPing: isWooCommercePing,
  // What was deleted has an id only.
  isNotice: ({ headers }) => headers['x-wc-webhook-topic']?.endsWith('.deleted') === true,
  fields: {
    contacts: {
      first_name: ['first_name', 'billing.first_name', 'shipping.first_name'],
      last_name: ['last_name', 'billing.last_name', 'shipping.last_name'],
      email: ['email', 'billing.email'],
      phone: ['billing.phone', 'shipping.phone'],
      company_name: ['billing.company', 'shipping.company'],
      note_content: ['customer_note'],
      ...addressAt(['billing', 'shipping'], {
        line1: 'address_1',
        line2: 'address_2',
        city: 'city',
        state: 'state',
        postal_code: 'postcode',
        country: 'country',
      }),
    },
    companies: { name: ['billing.company', 'shipping.company'] },
    deals: {
      name: ['number', 'id'],
      amount: ['total'],
      currency: ['currency'],
      company_name: ['billing.company'],
    },
  },
}
