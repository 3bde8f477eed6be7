import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { SENDER_VERIFICATIONS, type SenderVerification } from '../../../db/model/incoming/types.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

/** Signs a body at a time in seconds; `url` is what the sender calls. */
type Sign = (body: string, time: number, url: string) => Record<string, string>

const key = Buffer.alloc(32, 7)
const secret = `whsec_${key.toString('base64')}`
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const publicKey = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64')

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

/** With these the sender shows its secret; Mailgun signs in the body, which has a test of its own. */
const NOT_IN_HEADERS = ['secret', 'token', 'mailgun'] as const
type NotInHeaders = (typeof NOT_IN_HEADERS)[number]

/** Each verification that signs in headers. */
const SIGNING: Record<Exclude<SenderVerification, NotInHeaders>, Sign> = {
  standard_webhooks: standard('webhook'),
  svix: standard('svix'),
  github: hub,
  meta: hub,
  shopify: (body) => ({ 'X-Shopify-Hmac-Sha256': mac(body, 'base64') }),
  typeform: (body) => ({ 'Typeform-Signature': `sha256=${mac(body, 'base64')}` }),
  linear: (body) => ({ 'Linear-Signature': mac(body) }),
  intercom: (body) => ({ 'X-Hub-Signature': `sha1=${mac(body, 'hex', secret, 'sha1')}` }),
  twilio: (body, _time, url) => {
    const form = new URLSearchParams(body)
    form.sort()
    const text = url + [...form].flat().join('')
    return {
      'Content-Type': 'application/x-www-form-urlencoded',
      'X-Twilio-Signature': mac(text, 'base64', secret, 'sha1'),
    }
  },
  stripe: listed('Stripe-Signature'),
  calendly: listed('Calendly-Webhook-Signature'),
  slack: (body, time) => ({
    'X-Slack-Request-Timestamp': String(time),
    'X-Slack-Signature': `v0=${mac(`v0:${time}:${body}`)}`,
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

describe('a captured request with another id in a header', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  it('is tried for every verification that signs', () => {
    const signing = SENDER_VERIFICATIONS.filter((type) => !NOT_IN_HEADERS.some((one) => one === type))
    assert.deepEqual(Object.keys(SIGNING).sort(), [...signing].sort())
  })

  const webhookOf = (type: string) =>
    test.createWebhook({
      verification: { type },
      secret: type === 'sendgrid' ? publicKey : secret,
      deduplication: { action: 'Create Anyway' },
      field_mapping: { mode: 'manual', rules: [{ from: 'email', to: 'email' }] },
    })
  const now = () => Math.floor(Date.now() / 1000)

  for (const [type, signed] of Object.entries(SIGNING))
    it(`is a repetition: ${type}`, async () => {
      const webhook = await webhookOf(type)
      const url = webhook.url
      const body = type === 'twilio' ? 'email=ada%40x.test' : JSON.stringify({ email: 'ada@x.test' })
      const captured = signed(body, now(), url)
      const send = async (headers: object) => {
        const { status, body: answer } = await test.send(webhook, body, {
          'X-Webhook-Secret': '',
          ...captured,
          ...headers,
        })
        assert.equal(status, 200, JSON.stringify(answer))
        return answer
      }
      const first = await send({ 'Idempotency-Key': 'one' })
      assert.equal(first.action, 'created')
      for (const headers of [
        { 'Idempotency-Key': 'two' },
        {},
        { 'X-GitHub-Delivery': 'three' },
        type === 'standard_webhooks' ? {} : { 'webhook-id': 'four' },
      ]) {
        const again = await send(headers)
        assert.deepEqual(
          [again.message, again.record_id],
          ['already received', first.record_id],
          JSON.stringify(headers),
        )
      }
      const together = await Promise.all(
        ['five', 'six', 'seven'].map((id) => send({ 'Idempotency-Key': id })),
      )
      assert.deepEqual(
        together.map(({ record_id }) => record_id),
        together.map(() => first.record_id),
      )
    })

  it('differs from a retry of its sender, which has its id and another time, and then cannot be repeated either', async () => {
    const webhook = await webhookOf('zendesk')
    const body = JSON.stringify({ email: 'retry@x.test' })
    const id = 'X-Zendesk-Webhook-Invocation-Id'
    const send = async (time: number, value: string) =>
      (
        await test.send(webhook, body, {
          'X-Webhook-Secret': '',
          ...SIGNING.zendesk(body, time, ''),
          [id]: value,
        })
      ).body
    const time = now()
    const first = await send(time, 'one')
    const retry = await send(time + 60, 'one')
    assert.deepEqual([retry.message, retry.record_id], ['already received', first.record_id])
    const captured = await send(time + 60, 'two')
    assert.deepEqual([captured.message, captured.record_id], ['already received', first.record_id])
    const other = await send(time + 120, 'three')
    assert.equal(other.action, 'created')
  })
})
