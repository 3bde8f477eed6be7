import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { isVerified } from '../../../api/incoming/verify.ts'

const bytes = Buffer.from('{"a":1}')
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const hex = createHmac('sha256', secret).update(bytes).digest('hex')
const base64 = createHmac('sha256', secret).update(bytes).digest('base64')
// Read at the start of a test: a long suite loads its files minutes before.
let seconds: number
beforeEach(() => {
  seconds = Math.floor(Date.now() / 1000)
})

describe('verification of senders', () => {
  it('accepts the secret, the previous secret of a rotation, and no other', () => {
    const headers = { 'x-webhook-secret': 'old-secret' }
    assert.equal(isVerified({ type: 'secret' }, headers, bytes, ['new-secret', 'old-secret']), true)
    assert.equal(isVerified({ type: 'secret' }, headers, bytes, ['new-secret']), false)
    assert.equal(isVerified({ type: 'secret' }, {}, bytes, ['new-secret']), false)
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
})
