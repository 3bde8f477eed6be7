import {
  createHash,
  createHmac,
  createPublicKey,
  timingSafeEqual,
  verify as verifySignature,
} from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { SenderVerification, Verification } from '../../db/model/incoming/types.ts'
import { isObject } from '../../workflows/shared/is-object.ts'
import { standardKey } from '../../workflows/shared/webhook-signature.ts'
import { DROPBOX_SIGN_RETRIES, eventOfForm } from './dropbox-sign.ts'

/** What a verification reads of a request, besides its body. */
export interface SignedRequest {
  method: string
  headers: IncomingHttpHeaders
  /** The URL that the sender called. */
  url: string
  /** The token of the URL: `?token=` or the last segment of the path. */
  token?: string | undefined
}

/** A signature or secret as sent, and the test of it. */
export interface Signed {
  /** Several while the sender's secrets rotate. Empty ones are none. */
  given: string[]
  /** What it must be, or a test for what cannot be computed. */
  expected: string | ((given: string) => boolean)
  /** The signed time in seconds, where one is signed; NaN if it is missing. */
  seconds?: number
  /** How old the signed time may be, in seconds, of a sender whose retries keep the time of the first attempt. */
  oldest?: number
}

/** What a sender signs, by its documentation. Undefined if the request or the secret has nothing to compare. */
type Scheme = (request: SignedRequest, bytes: Buffer, secret: string) => Signed | undefined

/**
 * The schemes of the senders. The address of each documentation is in its file in `db/model/incoming/mapping/senders/`.
 */
export const SCHEMES: Record<SenderVerification, Scheme> = {
  secret: (request, _bytes, secret) => ({
    given: [header(request, 'x-webhook-secret'), header(request, 'x-gitlab-token')],
    expected: secret,
  }),
  token: ({ token = '' }, _bytes, secret) => ({ given: [token], expected: secret }),
  github: hub,
  // Meta signs as GitHub does.
  meta: hub,
  shopify: (request, bytes, secret) => ({
    given: [header(request, 'x-shopify-hmac-sha256')],
    expected: sha256(secret, bytes).toString('base64'),
  }),
  stripe: (request, bytes, secret) => listed(request, 'stripe-signature', bytes, secret),
  calendly: (request, bytes, secret) => listed(request, 'calendly-webhook-signature', bytes, secret),
  slack: (request, bytes, secret) => versioned(request, 'x-slack', bytes, secret),
  // Zoom signs as Slack does.
  zoom: (request, bytes, secret) => versioned(request, 'x-zm', bytes, secret),
  hubspot(request, bytes, secret) {
    const time = header(request, 'x-hubspot-request-timestamp')
    const expected = sha256(secret, request.method, decodedUrl(request.url), bytes, time).toString('base64')
    return { given: [header(request, 'x-hubspot-signature-v3')], expected, seconds: secondsOf(time) / 1000 }
  },
  standard_webhooks: (request, bytes, secret) => standard(request, 'webhook', bytes, secret),
  svix: (request, bytes, secret) => standard(request, 'svix', bytes, secret),
  webflow(request, bytes, secret) {
    const time = header(request, 'x-webflow-timestamp')
    const expected = sha256(secret, `${time}:`, bytes).toString('hex')
    return { given: [header(request, 'x-webflow-signature')], expected, seconds: secondsOf(time) / 1000 }
  },
  paddle(request, bytes, secret) {
    const parts = pairs(header(request, 'paddle-signature'), ';')
    const time = parts.find(([name]) => name === 'ts')?.[1] ?? ''
    const given = parts.filter(([name]) => name === 'h1').map(([, value]) => value)
    return { given, expected: sha256(secret, `${time}:`, bytes).toString('hex'), seconds: secondsOf(time) }
  },
  zendesk(request, bytes, secret) {
    const time = header(request, 'x-zendesk-webhook-signature-timestamp')
    return {
      given: [header(request, 'x-zendesk-webhook-signature')],
      expected: sha256(secret, time, bytes).toString('base64'),
      seconds: Date.parse(time) / 1000,
    }
  },
  typeform: (request, bytes, secret) => ({
    given: [header(request, 'typeform-signature')],
    expected: `sha256=${sha256(secret, bytes).toString('base64')}`,
  }),
  linear: (request, bytes, secret) => ({
    given: [header(request, 'linear-signature')],
    expected: sha256(secret, bytes).toString('hex'),
  }),
  intercom: (request, bytes, secret) => ({
    given: [header(request, 'x-hub-signature')],
    expected: `sha1=${hmac('sha1', secret, bytes).toString('hex')}`,
  }),
  customerio(request, bytes, secret) {
    const time = header(request, 'x-cio-timestamp')
    const expected = sha256(secret, `v0:${time}:`, bytes).toString('hex')
    return { given: [header(request, 'x-cio-signature')], expected, seconds: secondsOf(time) }
  },
  square: (request, bytes, secret) => ({
    given: [header(request, 'x-square-hmacsha256-signature')],
    expected: sha256(secret, request.url, bytes).toString('base64'),
  }),
  chatwoot(request, bytes, secret) {
    const time = header(request, 'x-chatwoot-timestamp')
    const expected = `sha256=${sha256(secret, `${time}.`, bytes).toString('hex')}`
    return { given: [header(request, 'x-chatwoot-signature')], expected, seconds: secondsOf(time) }
  },
  close(request, bytes, secret) {
    const time = header(request, 'close-sig-timestamp')
    // A text that is not hexadecimal has no bytes: as a key, anybody would have it.
    const key = isHex(secret) ? Buffer.from(secret, 'hex') : undefined
    const expected = key ? hmac('sha256', key, time, bytes).toString('hex') : () => false
    return { given: [header(request, 'close-sig-hash')], expected, seconds: secondsOf(time) }
  },
  pandadoc: ({ url }, bytes, secret) => ({
    given: [/[?&]signature=([^&#]*)/.exec(url)?.[1] ?? ''],
    expected: sha256(secret, bytes).toString('hex'),
  }),
  dialpad(_request, bytes, secret) {
    const token = signedToken(bytes)
    return token && { given: [token.signature], expected: sha256(secret, token.signed).toString('base64url') }
  },
  // The content of the event is not signed. https://developers.hellosign.com/docs/events/walkthrough/
  dropbox_sign(request, bytes, secret) {
    const { event_time, event_type, event_hash } = eventOfForm(bytes, header(request, 'content-type')) ?? {}
    // Digits only: characters of the type would be read as a part of the time.
    if (!/^\d{10}$/.test(String(event_time)) || !isText(event_type) || !isText(event_hash)) return undefined
    return {
      given: [String(event_hash)],
      expected: sha256(secret, `${event_time}${event_type}`).toString('hex'),
      seconds: secondsOf(String(event_time)),
      oldest: DROPBOX_SIGN_RETRIES,
    }
  },
  linkedin,
  twilio,
  sendgrid,
  mailgun,
}

/**
 * The parts of a body that is a JSON Web Token (RFC 7515) and nothing else. Its header is not asked for the algorithm: the
 * sender chooses it, and who verifies must not let it.
 */
function signedToken(bytes: Buffer): { signed: string; payload: string; signature: string } | undefined {
  const parts = /^([\w-]+\.([\w-]+))\.([\w-]+)$/.exec(bytes.toString('latin1'))
  return parts ? { signed: parts[1]!, payload: parts[2]!, signature: parts[3]! } : undefined
}

/** What a sender says in a body that is a token; undefined for another body. */
export function payloadOfToken(bytes: Buffer): Buffer | undefined {
  const token = signedToken(bytes)
  return token && Buffer.from(token.payload, 'base64url')
}

/** The time in seconds that the headers of a signed request have; undefined if its sender signs none. */
export function signedTime({ type }: Verification, headers: IncomingHttpHeaders): number | undefined {
  if (type === 'basic' || type === 'hmac') return undefined
  return SCHEMES[type]({ method: 'POST', headers, url: '' }, Buffer.alloc(0), '')?.seconds
}

function hub(request: SignedRequest, bytes: Buffer, secret: string): Signed {
  return {
    given: [header(request, 'x-hub-signature-256')],
    expected: `sha256=${sha256(secret, bytes).toString('hex')}`,
  }
}

/** `v0=…`, with the time in a header of its own. */
function versioned(request: SignedRequest, prefix: string, bytes: Buffer, secret: string): Signed {
  const time = header(request, `${prefix}-request-timestamp`)
  const expected = `v0=${sha256(secret, `v0:${time}:`, bytes).toString('hex')}`
  return { given: [header(request, `${prefix}-signature`)], expected, seconds: secondsOf(time) }
}

/** `t=…,v1=…`, as Stripe signs. */
function listed(request: SignedRequest, name: string, bytes: Buffer, secret: string): Signed {
  const parts = pairs(header(request, name), ',')
  const time = parts.find(([part]) => part === 't')?.[1] ?? ''
  const given = parts.filter(([part]) => part === 'v1').map(([, value]) => value)
  return { given, expected: sha256(secret, `${time}.`, bytes).toString('hex'), seconds: secondsOf(time) }
}

/** https://www.standardwebhooks.com; Svix, who began it, has other names of headers. */
function standard(request: SignedRequest, prefix: string, bytes: Buffer, secret: string): Signed | undefined {
  const [id, time] = [header(request, `${prefix}-id`), header(request, `${prefix}-timestamp`)]
  const key = standardKey(secret)
  if (!key || id === '') return undefined
  const expected = `v1,${hmac('sha256', key, `${id}.${time}.`, bytes).toString('base64')}`
  return { given: header(request, `${prefix}-signature`).split(' '), expected, seconds: secondsOf(time) }
}

const LINKEDIN_PREFIX = 'hmacsha256='

/**
 * LinkedIn documents "the hash of the body prefixed by `hmacsha256=`": the prefix is signed with the body, or it stands
 * before the hash in the header, as in the schemes of others. Both need the secret, so both are accepted. The body must
 * be a JSON object, as notifications are: anybody may have a UUID signed with the same key by the challenge, and that
 * signature must not be valid for a body.
 * https://learn.microsoft.com/linkedin/shared/api-guide/webhook-validation
 */
function linkedin(request: SignedRequest, bytes: Buffer, secret: string): Signed | undefined {
  if (!isObject(parsed(bytes))) return undefined
  const signed = [LINKEDIN_PREFIX, ''].map((prefix) => sha256(secret, prefix, bytes).toString('hex'))
  const sent = header(request, 'x-li-signature')
  return {
    given: [sent.startsWith(LINKEDIN_PREFIX) ? sent.slice(LINKEDIN_PREFIX.length) : sent],
    expected: (given) => signed.filter((one) => equal(given, one)).length > 0,
  }
}

/**
 * The URL, then the names and values of a form in the order of their names; of another body the URL has the SHA-256.
 * https://www.twilio.com/docs/usage/security
 */
function twilio(request: SignedRequest, bytes: Buffer, secret: string): Signed | undefined {
  const isForm = header(request, 'content-type').startsWith('application/x-www-form-urlencoded')
  const bodyHash = /[?&]bodySHA256=([0-9a-f]{64})(?:&|$)/i.exec(request.url)?.[1]
  if (!isForm && bodyHash?.toLowerCase() !== createHash('sha256').update(bytes).digest('hex'))
    return undefined
  const expected = hmac('sha1', secret, request.url, isForm ? signedForm(bytes) : '').toString('base64')
  return { given: [header(request, 'x-twilio-signature')], expected }
}

/** What Twilio signs of a form, whatever the order of its members, and wherever their names end. */
export function signedForm(bytes: Buffer): string {
  const form = new URLSearchParams(bytes.toString('utf8'))
  form.sort()
  return [...form].flat().join('')
}

/**
 * ECDSA with the key pair of SendGrid: the secret is the public key that its settings show.
 * https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
 */
function sendgrid(request: SignedRequest, bytes: Buffer, secret: string): Signed | undefined {
  const time = header(request, 'x-twilio-email-event-webhook-timestamp')
  const expected = (signature: string) => {
    try {
      const key = createPublicKey({ key: Buffer.from(secret, 'base64'), format: 'der', type: 'spki' })
      const signed = Buffer.concat([Buffer.from(time), bytes])
      return verifySignature('sha256', signed, key, Buffer.from(signature, 'base64'))
    } catch {
      // The secret is no key.
      return false
    }
  }
  return {
    given: [header(request, 'x-twilio-email-event-webhook-signature')],
    expected,
    seconds: secondsOf(time),
  }
}

/**
 * Mailgun repeats a request for 8 hours (10, 10, 15 and 30 minutes, 1, 2 and 4 hours after one another), with the time
 * and the token of the first attempt. A token is remembered for longer, so that none counts twice.
 */
const MAILGUN_RETRIES = 9 * 3_600

/**
 * The time and a token in the body, not the rest of it: `deliveryOf` takes each token once. The parent account of a
 * subaccount signs too. https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
 */
function mailgun(_request: SignedRequest, bytes: Buffer, secret: string): Signed | undefined {
  const { timestamp, token, signature, 'parent-signature': parent } = signatureOfMailgun(bytes) ?? {}
  // Digits only: in `1770920772e0…` characters of the token would be read as a part of the time.
  if (!/^\d{10}$/.test(String(timestamp)) || !isText(token)) return undefined
  return {
    given: [signature, parent].filter(isText).map(String),
    expected: sha256(secret, String(timestamp), String(token)).toString('hex'),
    seconds: secondsOf(String(timestamp)),
    oldest: MAILGUN_RETRIES,
  }
}

/** The signature in a body of Mailgun, with what it signs; undefined if the body has none. */
export function signatureOfMailgun(bytes: Buffer): Record<string, unknown> | undefined {
  const { signature } = Object(parsed(bytes))
  return isObject(signature) ? signature : undefined
}

/** A body of JSON; undefined for another. */
function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

/** Whether a text is the bytes of a key in hexadecimal. */
export const isHex = (text: string): boolean => /^([0-9a-f]{2})+$/i.test(text)

const isText = (value: unknown) => typeof value === 'string' || typeof value === 'number'

const header = ({ headers }: SignedRequest, name: string) => String(headers[name] ?? '')

const secondsOf = (text: string) => Number(text || Number.NaN)

const pairs = (text: string, separator: string): [string, string][] =>
  text.split(separator).map((part) => {
    const [name = '', ...value] = part.trim().split('=')
    return [name, value.join('=')]
  })

/** HubSpot signs the URL with these characters decoded. */
const decodedUrl = (url: string) =>
  url.replace(/%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, (encoded) => decodeURIComponent(encoded))

const sha256 = (key: string, ...content: (string | Buffer)[]) => hmac('sha256', key, ...content)

export function hmac(algorithm: string, key: string | Buffer, ...content: (string | Buffer)[]): Buffer {
  const mac = createHmac(algorithm, key)
  for (const part of content) mac.update(part)
  return mac.digest()
}

/** Compares hashes, so that the time reveals neither content nor length. */
export function equal(given: string, expected: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hash(given), hash(expected))
}
