import assert from 'node:assert/strict'
import { createHash, createHmac, generateKeyPairSync, sign as signWith } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { verify } from '../../../api/incoming/verify.ts'
import type { Verification } from '../../../db/model/incoming/types.ts'

const bytes = Buffer.from('{"a":1}')
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const hex = createHmac('sha256', secret).update(bytes).digest('hex')
const base64 = createHmac('sha256', secret).update(bytes).digest('base64')
// Set at the start of each test, because a long suite loads its files minutes before.
let seconds: number
beforeEach(() => {
  seconds = Math.floor(Date.now() / 1000)
})

const at = (headers: Record<string, string>, more: object = {}) => ({
  method: 'POST',
  url: 'https://agx.example/webhooks/incoming/1',
  headers,
  ...more,
})
const isVerified = (
  verification: Verification,
  headers: Record<string, string>,
  body: Buffer,
  secrets: string[],
  now?: number,
) => verify(verification, at(headers), body, secrets, now) === 'verified'

describe('verification of senders', () => {
  it('accepts the secret, the previous secret of a rotation, and no other', () => {
    const headers = { 'x-webhook-secret': 'old-secret' }
    assert.equal(isVerified({ type: 'secret' }, headers, bytes, ['new-secret', 'old-secret']), true)
    assert.equal(isVerified({ type: 'secret' }, headers, bytes, ['new-secret']), false)
    assert.equal(isVerified({ type: 'secret' }, {}, bytes, ['new-secret']), false)
    // GitLab's name for it.
    assert.equal(isVerified({ type: 'secret' }, { 'x-gitlab-token': 'a-secret' }, bytes, ['a-secret']), true)
    assert.equal(isVerified({ type: 'secret' }, { 'x-gitlab-token': 'another' }, bytes, ['a-secret']), false)
  })

  it('accepts signatures of GitHub, Shopify and a generic HMAC', () => {
    const generic = {
      type: 'hmac',
      header: 'X-Sign',
      algorithm: 'sha256',
      encoding: 'hex',
      prefix: 'v=',
    } as const
    assert.equal(
      isVerified({ type: 'github' }, { 'x-hub-signature-256': `sha256=${hex}` }, bytes, [secret]),
      true,
    )
    assert.equal(isVerified({ type: 'shopify' }, { 'x-shopify-hmac-sha256': base64 }, bytes, [secret]), true)
    assert.equal(isVerified(generic, { 'x-sign': `v=${hex}` }, bytes, [secret]), true)
    assert.equal(isVerified(generic, { 'x-sign': `v=${hex}` }, Buffer.from('{"a":2}'), [secret]), false)
  })

  it('accepts recent signatures of the standardwebhooks package', () => {
    const signature = new Webhook(secret).sign('msg_1', new Date(seconds * 1000), bytes.toString())
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(seconds),
      'webhook-signature': signature,
    }
    assert.equal(isVerified({ type: 'standard_webhooks' }, headers, bytes, [secret]), true)
    const later = Date.now() + 3_600_000
    assert.equal(isVerified({ type: 'standard_webhooks' }, headers, bytes, [secret], later), false)
  })

  it('refuses signatures with the key of a secret that is not base64, or too short', () => {
    for (const weak of ['.'.repeat(16), 'whsec_', `whsec_${'.'.repeat(32)}`, 'whsec_QUJDRA==']) {
      const key = Buffer.from(weak.replace(/^whsec_/, ''), 'base64')
      const signed = createHmac('sha256', key).update(`msg_1.${seconds}.`).update(bytes).digest('base64')
      const headers = {
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(seconds),
        'webhook-signature': `v1,${signed}`,
      }
      assert.equal(isVerified({ type: 'standard_webhooks' }, headers, bytes, [weak]), false, weak)
    }
  })

  it('accepts recent signatures of Stripe', () => {
    const v1 = createHmac('sha256', secret).update(`${seconds}.`).update(bytes).digest('hex')
    const headers = { 'stripe-signature': `t=${seconds},v1=${'0'.repeat(64)},v1=${v1}` }
    assert.equal(isVerified({ type: 'stripe' }, headers, bytes, [secret]), true)
    assert.equal(isVerified({ type: 'stripe' }, { 'stripe-signature': `v1=${v1}` }, bytes, [secret]), false)
  })

  it('accepts a token in the URL, and HTTP basic', () => {
    const given = (token?: string) => verify({ type: 'token' }, at({}, { token }), bytes, [secret])
    assert.deepEqual([given(secret), given('guess'), given()], ['verified', 'wrong', 'missing'])
    const basic = (text: string) =>
      verify(
        { type: 'basic', username: 'form' },
        at({ authorization: `Basic ${Buffer.from(text).toString('base64')}` }),
        bytes,
        [secret],
      )
    assert.deepEqual([basic(`form:${secret}`), basic(`other:${secret}`)], ['verified', 'wrong'])
  })

  it('accepts recent signatures of Calendly, Slack and HubSpot, the latter of the URL too', () => {
    const sign = (...parts: (string | Buffer)[]) => {
      const mac = createHmac('sha256', secret)
      for (const part of parts) mac.update(part)
      return mac
    }
    const calendly = `t=${seconds},v1=${sign(`${seconds}.`, bytes).digest('hex')}`
    assert.ok(isVerified({ type: 'calendly' }, { 'calendly-webhook-signature': calendly }, bytes, [secret]))
    const slack = {
      'x-slack-request-timestamp': String(seconds),
      'x-slack-signature': `v0=${sign(`v0:${seconds}:`, bytes).digest('hex')}`,
    }
    assert.ok(isVerified({ type: 'slack' }, slack, bytes, [secret]))
    const url = 'https://agx.example/webhooks/incoming/1?a=x:y'
    const hubspot = {
      'x-hubspot-request-timestamp': String(seconds * 1000),
      'x-hubspot-signature-v3': sign('POST', url, bytes, String(seconds * 1000)).digest('base64'),
    }
    const called = (to: string) => verify({ type: 'hubspot' }, at(hubspot, { url: to }), bytes, [secret])
    assert.equal(called('https://agx.example/webhooks/incoming/1?a=x%3Ay'), 'verified')
    assert.equal(called('https://agx.example/webhooks/incoming/2'), 'wrong')
  })

  it('tells a missing signature, a wrong one and a stale timestamp apart', () => {
    const v1 = createHmac('sha256', secret).update(`${seconds}.`).update(bytes).digest('hex')
    const given = (headers: Record<string, string>, now?: number) =>
      verify({ type: 'stripe' }, at(headers), bytes, ['another-secret', secret], now)
    const signed = { 'stripe-signature': `t=${seconds},v1=${v1}` }
    assert.equal(given({}), 'missing')
    assert.equal(given({ 'stripe-signature': `t=${seconds},v1=${'0'.repeat(64)}` }), 'wrong')
    assert.equal(given(signed, (seconds + 301) * 1000), 'stale')
    assert.equal(given(signed, (seconds + 299) * 1000), 'verified')
  })

  it('accepts the signatures of further senders, of this body only', () => {
    const mac = (content: string, encoding: 'hex' | 'base64', algorithm = 'sha256') =>
      createHmac(algorithm, secret).update(content).digest(encoding)
    const text = bytes.toString()
    const now = new Date(seconds * 1000).toISOString()
    const svix = new Webhook(secret).sign('msg_1', new Date(seconds * 1000), text)
    for (const [type, headers] of [
      [
        'webflow',
        {
          'x-webflow-timestamp': `${seconds}000`,
          'x-webflow-signature': mac(`${seconds}000:${text}`, 'hex'),
        },
      ],
      [
        'paddle',
        { 'paddle-signature': `ts=${seconds};h1=${'0'.repeat(64)};h1=${mac(`${seconds}:${text}`, 'hex')}` },
      ],
      [
        'zendesk',
        {
          'x-zendesk-webhook-signature-timestamp': now,
          'x-zendesk-webhook-signature': mac(now + text, 'base64'),
        },
      ],
      ['typeform', { 'typeform-signature': `sha256=${mac(text, 'base64')}` }],
      ['linear', { 'linear-signature': mac(text, 'hex') }],
      ['intercom', { 'x-hub-signature': `sha1=${mac(text, 'hex', 'sha1')}` }],
      ['svix', { 'svix-id': 'msg_1', 'svix-timestamp': String(seconds), 'svix-signature': svix }],
    ] as [Verification['type'], Record<string, string>][]) {
      const by = (body: Buffer, sent = headers, at?: number) =>
        isVerified({ type } as Verification, sent, body, [secret], at)
      assert.equal(by(bytes), true, type)
      assert.equal(by(Buffer.from('{"a":2}')), false, type)
      assert.equal(by(bytes, {}), false, type)
      const isTimed = !['typeform', 'linear', 'intercom'].includes(type)
      assert.equal(by(bytes, headers, Date.now() + 3_600_000), !isTimed, type)
    }
  })

  it('accepts what Twilio signs: the URL with a form, or with the hash of another body', () => {
    // The example of Twilio's documentation.
    const url = 'https://mycompany.com/myapp.php?foo=1&bar=2'
    const form =
      'To=%2B18005551212&Digits=1234&CallSid=CA1234567890ABCDE&Caller=%2B14158675309&From=%2B14158675309'
    const headers = {
      'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
      'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=',
    }
    const verdict = (request: object, body: string) =>
      verify({ type: 'twilio' }, { ...at(headers), url, ...request }, Buffer.from(body), ['12345'])
    assert.equal(verdict({}, form), 'verified')
    assert.equal(verdict({}, `${form}&Extra=1`), 'wrong')
    assert.equal(verdict({ url: `${url}&x=1` }, form), 'wrong')
    const hash = (body: string) => createHash('sha256').update(body).digest('hex')
    const signed = `${url}&bodySHA256=${hash('{}')}`
    const json = {
      url: signed,
      headers: {
        'content-type': 'application/json',
        'x-twilio-signature': createHmac('sha1', '12345').update(signed).digest('base64'),
      },
    }
    assert.equal(verdict(json, '{}'), 'verified')
    assert.equal(verdict(json, '{"a":1}'), 'missing')
  })

  it('accepts the ECDSA signatures of SendGrid by its public key, and refuses a secret that is none', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
    const time = String(seconds)
    const signature = signWith('sha256', Buffer.concat([Buffer.from(time), bytes]), privateKey).toString(
      'base64',
    )
    const headers = {
      'x-twilio-email-event-webhook-timestamp': time,
      'x-twilio-email-event-webhook-signature': signature,
    }
    const verdict = (secrets: string[], body = bytes, now?: number) =>
      verify({ type: 'sendgrid' }, at(headers), body, secrets, now)
    assert.equal(verdict([key]), 'verified')
    assert.equal(verdict([key], Buffer.from('[]')), 'wrong')
    assert.equal(verdict(['no key at all, but long']), 'wrong')
    assert.equal(verdict([key], bytes, Date.now() + 3_600_000), 'stale')
  })
})
