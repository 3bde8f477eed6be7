import assert from 'node:assert/strict'
import { isSecretName, MASK, maskSecrets } from '../../workflows/secret-names.ts'

describe('secret names', () => {
  for (const name of [
    ...['Authorization', 'Proxy-Authorization', 'Cookie', 'set-cookie', 'X-Webhook-Secret', 'client_secret'],
    ...['X-Hub-Signature-256', 'X-Shopify-Hmac-Sha256', 'access_token', 'csrfToken', 'password', 'passwd'],
    ...['credentials', 'api_key', 'apiKey', 'X-API-Key', 'apikey', 'key', 'private_key', 'accessKeyId'],
    ...['stripe_key', 'x-acme-key', 'database_url', 'DATABASE_URL'],
  ])
    it(`include ${name}`, () => assert.equal(isSecretName(name), true))

  for (const name of [
    ...['accept', 'content-type', 'email', 'name', 'keywords', 'monkey', 'key_account', 'Idempotency-Key'],
    ...['url', 'author'],
  ])
    it(`do not include ${name}`, () => assert.equal(isSecretName(name), false))

  it('are masked at every level of objects and lists, without other changes', () => {
    const at = new Date()
    assert.deepEqual(maskSecrets({ a: [{ token: { b: 1 }, c: at }], key: 1 }), {
      a: [{ token: MASK, c: at }],
      key: MASK,
    })
    assert.deepEqual(maskSecrets({ a: { b: { token: 1 } } }, 2), { a: { b: { token: 1 } } })
  })
})
