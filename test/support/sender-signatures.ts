import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import type { SenderVerification } from '../../db/model/incoming/types.ts'

/** Signs a body at a time in seconds; `url` is what the sender calls. */
export type Sign = (body: string, time: number, url: string) => Record<string, string>

const key = Buffer.alloc(32, 7)
export const secret = `whsec_${key.toString('base64')}`
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
export const publicKey = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')

/** The same key in hexadecimal. */
export const hexKey = key.toString('hex')

const mac = (
  text: string,
  encoding: 'hex' | 'base64' = 'hex',
  by: string | Buffer = secret,
  hash = 'sha256',
) => createHmac(hash, by).update(text).digest(encoding)
const listed =
  (name: string): Sign =>
  (body, time) => ({ [name]: `t=${time},v1=${mac(`${time}.${body}`)}` })
const standard =
  (prefix: string): Sign =>
  (body, time) => ({
    [`${prefix}-id`]: 'msg_1',
    [`${prefix}-timestamp`]: String(time),
    [`${prefix}-signature`]: `v1,${mac(`msg_1.${time}.${body}`, 'base64', key)}`,
  })
const hub: Sign = (body) => ({ 'X-Hub-Signature-256': `sha256=${mac(body)}` })

/**
 * With these the sender shows its secret, or signs elsewhere: Mailgun and Dropbox Sign in the body, Dialpad with the body as
 * a token, PandaDoc in the URL. Those have tests of their own.
 */
export const NOT_IN_HEADERS = ['secret', 'token', 'mailgun', 'dialpad', 'dropbox_sign', 'pandadoc'] as const
type NotInHeaders = (typeof NOT_IN_HEADERS)[number]

/** Each verification that signs in headers. */
export const SIGNING: Record<Exclude<SenderVerification, NotInHeaders>, Sign> = {
  standard_webhooks: standard('webhook'),
  svix: standard('svix'),
  github: hub,
  meta: hub,
  shopify: (body) => ({ 'X-Shopify-Hmac-Sha256': mac(body, 'base64') }),
  typeform: (body) => ({ 'Typeform-Signature': `sha256=${mac(body, 'base64')}` }),
  linear: (body) => ({ 'Linear-Signature': mac(body) }),
  intercom: (body) => ({ 'X-Hub-Signature': `sha1=${mac(body, 'hex', secret, 'sha1')}` }),
  chatwoot: (body, time) => ({
    'X-Chatwoot-Timestamp': String(time),
    'X-Chatwoot-Signature': `sha256=${mac(`${time}.${body}`)}`,
  }),
  customerio: (body, time) => ({
    'X-CIO-Timestamp': String(time),
    'X-CIO-Signature': mac(`v0:${time}:${body}`),
  }),
  linkedin: (body) => ({ 'X-LI-Signature': mac(`hmacsha256=${body}`) }),
  square: (body, _time, url) => ({ 'X-Square-HmacSha256-Signature': mac(url + body, 'base64') }),
  twilio: (body, _time, url) => {
    const form = new URLSearchParams(body)
    form.sort()
    const text = url + [...form].flat().join('')
    return {
      'Content-Type': 'application/x-www-form-urlencoded',
      'X-Twilio-Signature': mac(text, 'base64', secret, 'sha1'),
    }
  },
  close: (body, time) => ({
    'Close-Sig-Timestamp': String(time),
    'Close-Sig-Hash': mac(`${time}${body}`, 'hex', key),
  }),
  stripe: listed('Stripe-Signature'),
  calendly: listed('Calendly-Webhook-Signature'),
  slack: (body, time) => ({
    'X-Slack-Request-Timestamp': String(time),
    'X-Slack-Signature': `v0=${mac(`v0:${time}:${body}`)}`,
  }),
  zoom: (body, time) => ({
    'X-Zm-Request-Timestamp': String(time),
    'X-Zm-Signature': `v0=${mac(`v0:${time}:${body}`)}`,
  }),
  hubspot: (body, time, url) => ({
    'X-HubSpot-Request-Timestamp': String(time * 1000),
    'X-HubSpot-Signature-v3': mac(`POST${url}${body}${time * 1000}`, 'base64'),
  }),
  webflow: (body, time) => ({
    'X-Webflow-Timestamp': String(time * 1000),
    'X-Webflow-Signature': mac(`${time * 1000}:${body}`),
  }),
  paddle: (body, time) => ({ 'Paddle-Signature': `ts=${time};h1=${mac(`${time}:${body}`)}` }),
  zendesk: (body, time) => {
    const at = new Date(time * 1000).toISOString()
    return {
      'X-Zendesk-Webhook-Signature-Timestamp': at,
      'X-Zendesk-Webhook-Signature': mac(at + body, 'base64'),
    }
  },
  sendgrid: (body, time) => ({
    'X-Twilio-Email-Event-Webhook-Timestamp': String(time),
    'X-Twilio-Email-Event-Webhook-Signature': sign(
      'sha256',
      Buffer.from(`${time}${body}`),
      pair.privateKey,
    ).toString('base64'),
  }),
}
