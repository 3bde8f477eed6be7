import assert from 'node:assert/strict'
import { request } from 'undici'
import { startApi } from '../../support/api.ts'
import { withApi } from '../../support/with-api.ts'

describe('/docs', () => {
  const suite = withApi()
  const get = (path: string, headers: Record<string, string> = {}) =>
    suite.api.request('GET', path, { key: null, headers })
  const scriptOf = (page: string) => /<script src="([^"]+)">/.exec(page)![1]!

  it('is public and small, and runs only scripts of its own origin', async () => {
    const { status, headers, body } = await get('/docs')
    assert.equal(status, 200)
    assert.match(headers.get('content-type')!, /^text\/html/)
    assert.ok(Buffer.byteLength(body) < 3_000)
    const policy = headers.get('content-security-policy')!
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /script-src 'self';/)
    assert.match(policy, /connect-src 'self';/)
    assert.doesNotMatch(policy, /http|unsafe-eval/)
    const sources = [...body.matchAll(/(?:src|data-url)="([^"]*)"/g)].map(([, source]) => source)
    assert.deepEqual(sources, ['/openapi.json', scriptOf(body)])
    assert.doesNotMatch(body, /<script(?![^>]*\bsrc=)[^>]*>[^<]/, 'no inline script')
  })

  it('allows requests to the public URL of the API if it has another origin', async () => {
    const api = await startApi(suite.db, { PUBLIC_URL: 'https://api.example.com/base' })
    const { headers } = await api.request('GET', '/docs', { key: null })
    assert.match(headers.get('content-security-policy')!, /connect-src 'self' https:\/\/api\.example\.com;/)
    await api.close()
  })

  it('serves the script under the hash of its content, as immutable', async () => {
    const path = scriptOf((await get('/docs')).body)
    const { status, headers, body } = await get(path)
    assert.equal(status, 200)
    assert.match(headers.get('content-type')!, /^text\/javascript/)
    assert.match(headers.get('cache-control')!, /immutable/)
    assert.match(body, /data-configuration/)
    assert.equal((await get(path.replace(/-[^-]{4}/, '-0000'))).status, 404)
    assert.equal((await get('/docs/scalar.js')).status, 404)
  })

  it('compresses the document, the page and the script, each below its limit', async () => {
    const script = scriptOf((await get('/docs')).body)
    for (const [path, bound] of [
      ['/openapi.json', 134_000],
      ['/docs', 1_250],
      [script, 1_000_000],
    ] as const)
      for (const [accepted, encoding] of [
        ['gzip, deflate, br', 'br'],
        ['gzip', 'gzip'],
        ['identity', null],
      ] as const) {
        const { headers } = await get(path, { 'Accept-Encoding': accepted })
        assert.equal(headers.get('content-encoding'), encoding, path)
        assert.equal(headers.get('vary'), 'Accept-Encoding')
        const bytes = Number(headers.get('content-length'))
        if (encoding) assert.ok(bytes > 0 && bytes < bound, `${path} has ${bytes} bytes as ${encoding}`)
      }
  })

  it('answers 304 if the client has cached the content', async () => {
    // Without fetch, which sends Cache-Control: no-cache.
    const ask = async (path: string, headers: Record<string, string>) => {
      const { statusCode, headers: answered, body } = await request(suite.api.url + path, { headers })
      return { status: statusCode, etag: String(answered.etag), text: await body.text() }
    }
    for (const path of ['/openapi.json', '/docs']) {
      const { etag } = await ask(path, { 'Accept-Encoding': 'br' })
      const again = await ask(path, { 'Accept-Encoding': 'br', 'If-None-Match': etag })
      assert.deepEqual(again, { status: 304, etag, text: '' })
      const other = await ask(path, { 'Accept-Encoding': 'gzip', 'If-None-Match': etag })
      assert.equal(other.status, 200, 'another encoding is another representation')
    }
  })
})
