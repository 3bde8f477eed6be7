import { calendly } from './calendly.ts'
import { github } from './github.ts'
import { hubspot } from './hubspot.ts'
import { intercom } from './intercom.ts'
import { jotform } from './jotform.ts'
import { linkedin } from './linkedin.ts'
import { mailchimp } from './mailchimp.ts'
import { meta } from './meta.ts'
import { segment } from './segment.ts'
import { sendgrid } from './sendgrid.ts'
import { shopify, shopifyCustomer } from './shopify.ts'
import { stripe, stripeCustomer } from './stripe.ts'
import { twilio } from './twilio.ts'
import { typeform } from './typeform.ts'
import type { Sender, SenderRequest } from './types.ts'
import { woocommerce } from './woocommerce.ts'

/** The common senders; the first that matches is the sender. */
const senders: Sender[] = [
  github,
  shopifyCustomer,
  shopify,
  woocommerce,
  mailchimp,
  jotform,
  intercom,
  stripeCustomer,
  stripe,
  typeform,
  calendly,
  segment,
  sendgrid,
  hubspot,
  linkedin,
  meta,
  twilio,
]

/** The headers by which senders are recognised. None is a secret, except signatures, of which only the name counts. */
const HEADERS = [
  'user-agent',
  'x-github-event',
  'x-shopify-topic',
  'x-wc-webhook-topic',
  'x-hubspot-signature',
  'x-hubspot-signature-v3',
  'calendly-webhook-signature',
  'stripe-signature',
  'x-twilio-signature',
]

export const senderHeaders = (headers: Record<string, unknown>): SenderRequest['headers'] =>
  Object.fromEntries(
    HEADERS.filter((name) => typeof headers[name] === 'string').map((name) => [
      name,
      /signature/.test(name) ? '' : String(headers[name]),
    ]),
  )

/** The id of a delivery in the body, with the name of its sender. */
export function deliveryIdOf(request: SenderRequest): string | undefined {
  const sender = senderOf(request)
  const id = sender?.deliveryId?.(request)
  return ['string', 'number'].includes(typeof id) && id !== '' ? `${sender!.name} ${id}` : undefined
}

export const senderOf = (request: SenderRequest): Sender | undefined =>
  senders.find((sender) => sender.matches(request))
