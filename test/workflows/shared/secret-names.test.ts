import assert from 'node:assert/strict'
import { isSecretName, isSecretParameter, MASK, maskSecrets } from '../../../workflows/shared/secret-names.ts'

describe('secret names', () => {
  for (const name of [
    'Authorization',
    'Proxy-Authorization',
    'Cookie',
    'set-cookie',
    'X-Webhook-Secret',
    'client_secret',
    'X-Hub-Signature-256',
    'X-Shopify-Hmac-Sha256',
    'access_token',
    'csrfToken',
    'password',
    'passwd',
    'credentials',
    'api_key',
    'apiKey',
    'X-API-Key',
    'apikey',
    'key',
    'private_key',
    'accessKeyId',
    'X-Auth',
    'X-Custom',
    'X-Access-Key',
    'X-Pass',
    'pass',
    'db_pass',
    'smtpPass',
    'pwd',
    'sig',
    'X-Sig',
    'passphrase',
    'proxy-auth',
    'basicAuth',
    'stripe_key',
    'x-acme-key',
    'database_url',
    'DATABASE_URL',
  ])
    it(`include ${name}`, () => assert.equal(isSecretName(name), true))

  for (const name of [
    'accept',
    'content-type',
    'email',
    'name',
    'keywords',
    'monkey',
    'key_account',
    'Idempotency-Key',
    'url',
    'author',
    'authors',
    'X-Author',
    'author_id',
    'code',
    'country_code',
    'status_code',
    'zip_code',
    'compass',
    'boarding_pass',
    'passenger',
    'pass_count',
    'signal',
    'design',
    'custom',
    'X-Custom-Color',
    'oauth_scope',
    'authorized',
    'two_factor_auth',
  ])
    it(`do not include ${name}`, () => assert.equal(isSecretName(name), false))

  it('include `code` and `sig` in the query of a URL', () => {
    for (const name of ['code', 'Code', 'sig', 'token']) assert.equal(isSecretParameter(name), true)
    for (const name of ['country_code', 'codec', 'state']) assert.equal(isSecretParameter(name), false)
  })

  it('are masked at every level of objects and lists, without other changes', () => {
    const at = new Date()
    assert.deepEqual(maskSecrets({ a: [{ token: { b: 1 }, c: at }], key: 1 }), {
      a: [{ token: MASK, c: at }],
      key: MASK,
    })
    assert.deepEqual(maskSecrets({ a: { b: { token: 1 } } }, 2), { a: { b: { token: 1 } } })
  })
})
