import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { startApi } from '../../support/api.ts'
import { signIn } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('the security headers', () => {
  const suite = withApi()

  it('let nothing be cached or sniffed: keys, secrets, CSRF tokens, records, errors', async () => {
    const app = await signIn(suite.db, suite.api)
    const webhook = { name: 'Form', target_entity: 'Contact' }
    const answers = await Promise.all([
      app('POST', '/keys', { name: 'x', scopes: ['contacts:read'] }),
      app('POST', '/webhooks/incoming', webhook),
      app('GET', '/session'),
      suite.api.request('GET', '/v1/objects/contacts'),
      suite.api.request('GET', '/v1/me', { key: null }),
      suite.api.request('GET', '/nothing'),
    ])
    for (const { status, headers } of answers) {
      assert.equal(headers.get('cache-control'), 'no-store', String(status))
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('strict-transport-security'), null)
    }
  })

  it('keep the caching of static pages', async () => {
    const { headers } = await suite.api.request('GET', '/docs', { key: null })
    assert.equal(headers.get('cache-control'), 'no-cache')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
  })

  it('have HSTS if the public URL is https', async () => {
    const api = await startApi(suite.db, { PUBLIC_URL: 'https://agx.example' })
    for (const path of ['/v1/me', '/healthz', '/nothing']) {
      const { headers } = await api.request('GET', path)
      assert.equal(headers.get('strict-transport-security'), 'max-age=31536000')
    }
    await api.close()
  })

  it('refuse a request with two Authorization headers', async () => {
    const valid = `Authorization: Bearer ${suite.api.key}`
    for (const [expected, lines] of [
      [200, [valid]],
      [400, [valid, valid]],
      [400, [valid, 'authorization: Bearer other']],
      [400, ['Authorization: Basic eDp5', valid]],
    ] as const) {
      const socket = connect(Number(new URL(suite.api.url).port), '127.0.0.1')
      socket.write(['GET /v1/me HTTP/1.1', 'Host: x', 'Connection: close', ...lines, '', ''].join('\r\n'))
      let answer = ''
      for await (const chunk of socket) answer += chunk
      assert.match(answer, new RegExp(`^HTTP/1.1 ${expected} `), lines.join())
      if (expected === 400) assert.match(answer, /"invalid_request"/)
    }
  })

  it('show the URL of an outgoing webhook without its token to members', async () => {
    const owner = await signIn(suite.db, suite.api)
    const member = await signIn(suite.db, suite.api, 'member')
    const url = 'https://hooks.example.com/services/T00/B00/hunter2?sig=hunter3'
    const { body: made } = await owner('POST', '/webhooks/outgoing', { name: 'S', url, events: ['*'] })
    assert.equal(made.url, url)
    assert.equal((await owner('GET', `/webhooks/outgoing/${made.id}`)).body.url, url)
    for (const path of ['/webhooks/outgoing', `/webhooks/outgoing/${made.id}`]) {
      const { body } = await member('GET', path)
      assert.doesNotMatch(JSON.stringify(body), /hunter/)
      assert.equal((body.data?.[0] ?? body).url, 'https://hooks.example.com/…')
    }
  })
})
