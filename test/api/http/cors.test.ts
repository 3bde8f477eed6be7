import assert from 'node:assert/strict'
import { readConfig } from '../../../api/config.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

const PAGE = 'https://app.example.com'

describe('CORS', () => {
  const suite = withApi()
  let listed: TestApi
  let open: TestApi
  before(async () => {
    listed = await startApi(suite.db, { CORS_ORIGINS: `${PAGE}, http://localhost:5173` })
    open = await startApi(suite.db, { CORS_ORIGINS: '*' })
  })
  after(() => Promise.all([listed?.close(), open?.close()]))

  const preflight = async (api: TestApi, path: string, Origin = PAGE) => {
    const headers = {
      Origin,
      'Access-Control-Request-Method': 'PATCH',
      'Access-Control-Request-Headers': 'authorization,content-type,idempotency-key,if-match',
    }
    const response = await fetch(api.url + path, { method: 'OPTIONS', headers })
    await response.text()
    return response
  }
  const get = (api: TestApi, path: string, Origin = PAGE, key?: null) =>
    api.request('GET', path, { headers: { Origin }, ...(key === null && { key }) })
  const corsHeaders = ({ headers }: { headers: Headers }) =>
    [...headers.keys()].filter((name) => name.startsWith('access-control-'))
  const allowed = ({ headers }: { headers: Headers }) => headers.get('access-control-allow-origin')

  it('is off by default', async () => {
    for (const answer of [await preflight(suite.api, '/v1/me'), await get(suite.api, '/v1/me')])
      assert.deepEqual(corsHeaders(answer), [])
    assert.equal((await preflight(suite.api, '/v1/me')).status, 401)
  })

  it('answers the preflight of a listed origin without a key, with what /v1 accepts', async () => {
    const { status, headers } = await preflight(listed, '/v1/objects/contacts')
    assert.equal(status, 204)
    assert.equal(headers.get('access-control-allow-origin'), PAGE)
    assert.equal(headers.get('vary'), 'Origin')
    assert.match(headers.get('access-control-allow-methods')!, /\bPATCH\b.*\bDELETE\b/)
    for (const name of ['authorization', 'content-type', 'idempotency-key', 'if-match', 'prefer'])
      assert.ok(headers.get('access-control-allow-headers')!.toLowerCase().includes(name), name)
    assert.equal(headers.get('access-control-allow-credentials'), null)
  })

  it('lets a listed origin read answers and errors, with the headers of the interface', async () => {
    for (const [answer, status] of [
      [await get(listed, '/v1/me'), 200],
      [await get(listed, '/v1/me', 'http://localhost:5173'), 200],
      [await get(listed, '/v1/nowhere'), 404],
      [await get(listed, '/v1/me', PAGE, null), 401],
    ] as const) {
      assert.equal(answer.status, status)
      assert.ok([PAGE, 'http://localhost:5173'].includes(allowed(answer)!))
      assert.match(answer.headers.get('access-control-expose-headers')!, /X-Request-Id.*Retry-After/)
    }
  })

  it('refuses other origins, also similar ones, and varies by origin', async () => {
    for (const origin of [
      `${PAGE}.evil.com`,
      'http://app.example.com',
      `${PAGE}:8443`,
      'null',
      PAGE.toUpperCase(),
    ]) {
      const answer = await get(listed, '/v1/me', origin)
      assert.deepEqual(corsHeaders(answer), [], origin)
      assert.equal(answer.headers.get('vary'), 'Origin')
      assert.equal((await preflight(listed, '/v1/me', origin)).status, 401)
    }
  })

  it('with * allows every origin, never with credentials', async () => {
    const answer = await get(open, '/v1/me', 'https://any.example')
    assert.equal(allowed(answer), '*')
    assert.equal(answer.headers.get('access-control-allow-credentials'), null)
  })

  it('never opens the other paths', async () => {
    for (const path of ['/app/session', '/app/keys', '/metrics', '/webhooks/incoming/x', '/approvals/x'])
      for (const answer of [await preflight(open, path), await get(open, path)])
        assert.deepEqual(corsHeaders(answer), [], path)
  })

  it('refuses what is no origin at the start', () => {
    for (const origin of [
      'app.example.com',
      `${PAGE}/`,
      `${PAGE}/page`,
      'https://*.example.com',
      'ftp://a',
      'null',
    ])
      assert.throws(
        () => readConfig({ DATABASE_URL: suite.db.url, CORS_ORIGINS: origin }),
        /^ConfigError: CORS_ORIGINS .+ is not an origin/,
        origin,
      )
  })
})
