import { acuity } from './acuity.ts'
import { aircall } from './aircall.ts'
import { asana } from './asana.ts'
import { brevo } from './brevo.ts'
import { calcom } from './calcom.ts'
import { calendly } from './calendly.ts'
import { callrail } from './callrail.ts'
import { chargebee } from './chargebee.ts'
import { chatwoot } from './chatwoot.ts'
import { clickup, clickupAutomation } from './clickup.ts'
import { close, closeVariants } from './close.ts'
import { customerio } from './customerio.ts'
import { dialpad } from './dialpad.ts'
import { dropboxSign } from './dropboxsign.ts'
import { eventbrite } from './eventbrite.ts'
import { freshdesk } from './freshdesk.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'
import { gumroad } from './gumroad.ts'
import { hubspot } from './hubspot.ts'
import { intercom, intercomCompany } from './intercom.ts'
import { jira } from './jira.ts'
import { jotform } from './jotform.ts'
import { kit } from './kit.ts'
import { linear, linearIssue } from './linear.ts'
import { linkedin } from './linkedin.ts'
import { mailchimp } from './mailchimp.ts'
import { mailgun } from './mailgun.ts'
import { meta } from './meta.ts'
import { mollie } from './mollie.ts'
import { monday } from './monday.ts'
import { notion } from './notion.ts'
import { paddle, paddleVariants } from './paddle.ts'
import { pandadoc } from './pandadoc.ts'
import { pipedrive, pipedriveEntities } from './pipedrive.ts'
import { postmark } from './postmark.ts'
import { resend } from './resend.ts'
import { salesforce, salesforceVariants } from './salesforce.ts'
import { segment, segmentGroup } from './segment.ts'
import { sendgrid } from './sendgrid.ts'
import { shopify, shopifyCustomer } from './shopify.ts'
import { slack } from './slack.ts'
import { square } from './square.ts'
import { stripe, stripeCustomer } from './stripe.ts'
import { surveymonkey } from './surveymonkey.ts'
import { svix } from './svix.ts'
import { twilio } from './twilio.ts'
import { typeform } from './typeform.ts'
import type { Sender, SenderRequest } from './types.ts'
import { webflow } from './webflow.ts'
import { woocommerce } from './woocommerce.ts'
import { zendesk } from './zendesk.ts'
import { zoom } from './zoom.ts'

/** The common senders; the first that matches is the sender. */
export const ALL_SENDERS: readonly Sender[] = [
  github,
  gitlab,
  shopifyCustomer,
  shopify,
  woocommerce,
  mailchimp,
  mailgun,
  postmark,
  resend,
  brevo,
  customerio,
  ...pipedriveEntities,
  pipedrive,
  jotform,
  intercomCompany,
  intercom,
  stripeCustomer,
  stripe,
  chargebee,
  gumroad,
  freshdesk,
  typeform,
  calendly,
  segmentGroup,
  segment,
  sendgrid,
  hubspot,
  linkedin,
  meta,
  twilio,
  linearIssue,
  linear,
  ...paddleVariants,
  paddle,
  square,
  ...salesforceVariants,
  salesforce,
  slack,
  calcom,
  webflow,
  zendesk,
  zoom,
  aircall,
  kit,
  acuity,
  eventbrite,
  jira,
  chatwoot,
  dialpad,
  pandadoc,
  callrail,
  clickupAutomation,
  clickup,
  ...closeVariants,
  close,
  monday,
  mollie,
  surveymonkey,
  dropboxSign,
  asana,
  notion,
  // Its headers are those of many senders: the ones above are known better.
  svix,
]

/** The id of a sender: its name in lower case, without spaces. Variants of a sender share it. */
export const idOfSender = ({ name }: Pick<Sender, 'name'>): string => name.toLowerCase().replaceAll(' ', '_')

/** The known senders by their id, in the order of their names. */
export const SENDERS: ReadonlyMap<string, Sender> = new Map(
  ALL_SENDERS.toSorted((one, other) => one.name.localeCompare(other.name)).map((sender) => [
    idOfSender(sender),
    sender,
  ]),
)

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
  'linear-delivery',
  'paddle-signature',
  'svix-id',
  'x-acuity-signature',
  'x-cal-signature-256',
  'x-chatwoot-signature',
  'x-slack-signature',
  'x-webflow-signature',
  'x-zendesk-webhook-id',
  'x-zm-signature',
]

export const senderHeaders = (headers: Record<string, unknown>): SenderRequest['headers'] =>
  Object.fromEntries(
    HEADERS.filter((name) => typeof headers[name] === 'string').map((name) => [
      name,
      /signature/.test(name) ? '' : String(headers[name]),
    ]),
  )

/** The id of a delivery in the body, with the name of its sender. `chosen` as in `senderOf`. */
export function deliveryIdOf(request: SenderRequest, chosen?: string | null): string | undefined {
  const sender = senderOf(request, chosen)
  const id = sender?.deliveryId?.(request)
  return ['string', 'number'].includes(typeof id) && id !== '' ? `${sender!.name} ${id}` : undefined
}

/**
 * The sender of a request.
 * @param chosen the id of the one that the owner of the webhook has chosen: bodies of several senders may look alike, and
 * a sample has no headers, by which some are recognised. A body that is plainly of another one is of that one.
 */
export function senderOf(request: SenderRequest, chosen?: string | null): Sender | undefined {
  const known = (one: SenderRequest) => (sender: Sender) => sender.matches(one)
  const own = chosen ? ALL_SENDERS.filter((sender) => idOfSender(sender) === chosen) : []
  const { headers, payload } = request
  return (
    own.find(known(request)) ??
    ALL_SENDERS.find(known(request)) ??
    own.find(known({ headers: { ...ANY_HEADERS, ...headers }, payload }))
  )
}

/** Those of a request that has each header by which a sender is recognised. */
const ANY_HEADERS = Object.fromEntries(HEADERS.map((name) => [name, '']))
