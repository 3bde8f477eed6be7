import assert from 'node:assert/strict'
import { request } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { RequestOptions } from '../../support/api.ts'
import { createKey } from '../../support/api.ts'
import { type Json, rawMcp } from '../../support/mcp.ts'
import { withApi } from '../../support/with-api.ts'

const LIST = rawMcp('tools/list')
const LEGACY = { Accept: 'application/json, text/event-stream' }

describe('the protocol at /mcp', () => {
  const suite = withApi({
    CORS_ORIGINS: 'https://inspector.example.com',
    PUBLIC_URL: 'https://agx.example.com',
  })
  const post = (options: RequestOptions) => suite.api.request('POST', '/mcp', options)

  it('is discovered, and offers the current revision and the ones before', async () => {
    const { body } = await post(rawMcp('server/discover'))
    assert.deepEqual(body.result.supportedVersions, ['2026-07-28'])
    assert.match(body.result.instructions, /never follow instructions/)
    assert.deepEqual(Object.keys(body.result.capabilities), ['tools', 'resources', 'prompts', 'completions'])
    for (const protocolVersion of ['2025-11-25', '2025-06-18']) {
      const initialize = {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion, capabilities: {}, clientInfo: { name: 'a', version: '1' } },
      }
      const answer = await post({ headers: LEGACY, body: initialize })
      assert.equal(answer.status, 200)
      const [, data] = /^data: (.*)$/m.exec(answer.body)!
      assert.equal(JSON.parse(data!).result.protocolVersion, protocolVersion)
      assert.equal(answer.headers.get('mcp-session-id'), null)
    }
    const client = new Client({ name: 'auto', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    const headers = { Authorization: `Bearer ${suite.api.key}` }
    await client.connect(
      new StreamableHTTPClientTransport(new URL('/mcp', suite.api.url), { requestInit: { headers } }),
    )
    assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
    await client.close()
  })

  it('lets clients keep the list of tools, each key its own', async () => {
    const { headers: sent } = LIST
    const { body: document } = await suite.api.request('GET', '/openapi.json', { key: null })
    const { example } = document.paths['/mcp'].post.requestBody.content['application/json']
    const { body, headers } = await post({ headers: sent, body: example })
    assert.deepEqual([body.result.cacheScope, body.result.ttlMs], ['private', 300_000])
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.ok(headers.get('x-request-id'))
    assert.equal(headers.get('x-ratelimit-limit'), '6000')
  })

  it('needs a valid key, for every method', async () => {
    const expired = await createKey(suite.db, suite.api.organizationId, {
      expires_at: new Date(Date.now() - 1_000),
    })
    for (const [key, hint] of [
      [null, /Authorization: Bearer/],
      [expired.key, /unknown, expired, revoked/],
      ['agx_wrong', /./],
    ] as const)
      for (const method of ['POST', 'GET', 'DELETE', 'PUT']) {
        const { status, headers, body } = await suite.api.request(method, '/mcp', {
          key,
          ...(method === 'POST' && LIST),
        })
        assert.equal(status, 401, `${method} ${key}`)
        const metadata = 'https://agx.example.com/.well-known/oauth-protected-resource/mcp'
        const invalid = key === null ? '' : 'error="invalid_token", '
        assert.equal(headers.get('www-authenticate'), `Bearer ${invalid}resource_metadata="${metadata}"`)
        assert.equal(body.error.message, 'missing or invalid API key')
        assert.equal(body.error.data.type, 'unauthorized')
        assert.match(body.error.data.hint, hint)
      }
  })

  it('gives a key without scopes the tools that need none', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: [] })
    const { body } = await post({ ...LIST, key })
    assert.deepEqual(
      body.result.tools.map(({ name }: Json) => name),
      ['search_records', 'describe_records'],
    )
  })

  it('answers every invalid request with an error of the protocol', async () => {
    const call = (params: Json) => rawMcp('tools/call', params)
    const without = (name: string) => {
      const { [name]: _, ...headers } = LIST.headers as Record<string, string>
      return { ...LIST, headers }
    }
    const deep = `${'['.repeat(100)}${']'.repeat(100)}`
    const cases: [
      what: string,
      options: RequestOptions,
      status: number,
      code: number | undefined,
      text: RegExp,
    ][] = [
      ['no body', { headers: { ...LEGACY, 'Content-Type': 'application/json' } }, 400, -32700, /JSON/],
      ['no JSON', { ...LIST, body: '{"jsonrpc": ' }, 400, -32700, /not valid JSON at line 1/],
      ['not UTF-8', { ...LIST, body: Buffer.from([0x7b, 0xff]) }, 400, -32600, /UTF-8/],
      ['no object', { ...LIST, body: '5' }, 400, -32600, /./],
      [
        'too deep',
        { ...LIST, body: `{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": ${deep}}}` },
        400,
        -32600,
        /nested/,
      ],
      ['a batch', { ...LIST, body: [LIST.body, LIST.body] }, 400, -32600, /batches/],
      [
        'a body too large',
        { ...LIST, body: { ...LIST.body, pad: 'x'.repeat(1_100_000) } },
        413,
        -32000,
        /larger than 1,048,576/,
      ],
      [
        'another type',
        { ...LIST, headers: { ...LIST.headers, 'Content-Type': 'text/plain' } },
        415,
        -32000,
        /JSON/,
      ],
      [
        'compressed',
        { ...LIST, headers: { ...LIST.headers, 'Content-Encoding': 'gzip' } },
        415,
        -32000,
        /compressed/,
      ],
      ['no version header', without('MCP-Protocol-Version'), 400, -32020, /MCP-Protocol-Version/i],
      ['no method header', without('Mcp-Method'), 400, -32020, /Mcp-Method/i],
      [
        'another method in the header',
        { ...LIST, headers: { ...LIST.headers, 'Mcp-Method': 'tools/call' } },
        400,
        -32020,
        /./,
      ],
      ['an unknown version', rawMcp('tools/list', {}, { version: '2030-01-01' }), 400, -32022, /2030-01-01/],
      [
        'an old version in the header',
        {
          headers: { ...LEGACY, 'MCP-Protocol-Version': '2020-01-01' },
          body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
        },
        400,
        -32000,
        /2020-01-01/,
      ],
      [
        'no Accept',
        { headers: { Accept: 'text/html' }, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
        406,
        -32000,
        /Not Acceptable/,
      ],
      ['no such method', rawMcp('tools/destroy'), 404, -32601, /./],
      ['no such tool', call({ name: 'destroy', arguments: {} }), 200, -32602, /no tool destroy/],
      ['a tool without a name', call({ arguments: {} }), 200, -32602, /name/],
      ['arguments that are a list', call({ name: 'get_record', arguments: [1] }), 200, -32602, /./],
      [
        'no metadata',
        { headers: LIST.headers, body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} } },
        400,
        -32602,
        /./,
      ],
      [
        'metadata of a wrong type',
        { headers: LIST.headers, body: { ...LIST.body, params: { _meta: 'x' } } },
        400,
        undefined,
        /./,
      ],
    ]
    for (const [what, options, status, code, text] of cases) {
      const answer = await post(options)
      assert.equal(answer.status, status, `${what}: ${answer.status} ${JSON.stringify(answer.body)}`)
      assert.equal(answer.body.jsonrpc, '2.0', what)
      if (code !== undefined)
        assert.equal(answer.body.error.code, code, `${what}: ${JSON.stringify(answer.body)}`)
      assert.match(JSON.stringify(answer.body.error), text, what)
      assert.ok(answer.headers.get('x-request-id'), what)
    }
  })

  it('has one method, and no session to read or end', async () => {
    for (const method of ['GET', 'DELETE', 'PUT', 'PATCH']) {
      const { status, headers, body } = await suite.api.request(method, '/mcp', {
        headers: { Accept: 'text/event-stream' },
      })
      assert.deepEqual([status, headers.get('allow')], [405, 'POST'])
      assert.match(body.error.message, new RegExp(method))
    }
  })

  it('refuses pages of other origins', async () => {
    const from = (origin: string) => post({ ...LIST, headers: { ...LIST.headers, Origin: origin } })
    for (const origin of ['https://evil.example.com', 'null', 'http://localhost:9999']) {
      const { status, body } = await from(origin)
      assert.equal(status, 403, origin)
      assert.match(body.error.data.hint, /CORS_ORIGINS/)
    }
    for (const origin of ['https://agx.example.com', 'https://inspector.example.com'])
      assert.equal((await from(origin)).status, 200, origin)
    const { status, headers } = await suite.api.request('OPTIONS', '/mcp', {
      key: null,
      headers: { Origin: 'https://inspector.example.com', 'Access-Control-Request-Method': 'POST' },
    })
    assert.equal(status, 204)
    assert.match(headers.get('access-control-allow-headers')!, /MCP-Protocol-Version, Mcp-Method, Mcp-Name/)
  })

  it('refuses a foreign name of the service, under which another site may have pointed a browser at it', async () => {
    const { host, port } = new URL(suite.api.url)
    const under = (name: string, origin?: string) =>
      new Promise<number>((resolve, reject) => {
        const { headers, body } = LIST
        const sent = {
          ...headers,
          ...(origin && { Origin: origin }),
          Authorization: `Bearer ${suite.api.key}`,
        }
        const options = {
          method: 'POST',
          headers: { ...sent, 'Content-Type': 'application/json', Host: name },
        }
        request(new URL('/mcp', suite.api.url), options, (response) => resolve(response.resume().statusCode!))
          .on('error', reject)
          .end(JSON.stringify(body))
      })
    for (const name of [host, 'localhost', `[::1]:${port}`, 'agx', 'agx.prod.svc.local', 'agx.example.com'])
      assert.equal(await under(name), 200, name)
    assert.equal(await under(host, `http://${host}`), 200)
    for (const name of ['evil.example.com', 'agx.example.com.evil.com', 'local.evil.com:8080', 'a b', '@'])
      assert.ok((await under(name)) >= 400, name)
    assert.equal(await under('evil.example.com', 'http://evil.example.com'), 403)
  })

  it('ends a subscription at once, since nothing that it offers changes', async () => {
    const { status, body } = await post(
      rawMcp('subscriptions/listen', { notifications: { toolsListChanged: true } }),
    )
    assert.equal(status, 200)
    assert.match(body, /subscriptions\/acknowledged[\s\S]*"resultType":"complete"/)
  })
})
