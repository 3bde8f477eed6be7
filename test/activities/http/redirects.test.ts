import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createHttp, type HttpClient } from '../../../activities/http/client.ts'
import { nextHop } from '../../../activities/http/redirects.ts'
import type { HttpRequest } from '../../../workflows/effects/http.ts'
import { NodeError } from '../../../workflows/language/node-error.ts'

interface Seen {
  method: string
  host: string
  url: string
  headers: IncomingHttpHeaders
  body: string
}

/** Names that end in `.test` resolve to this machine: `a.test` and `b.test` are two origins. */
describe('redirects', () => {
  let server: Server
  let http: HttpClient
  let port: number
  let seen: Seen[] = []

  before(async () => {
    // The path of each request lists the remaining hops: /307:b.test/308:a.test/end
    server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { method = '', url = '', headers } = request
      seen.push({ method, host: headers.host!.split(':')[0]!, url, headers, body })
      const [, status, host, rest] = /^\/(\d+):([^/]+)(.*)$/.exec(url) ?? []
      if (!status) return response.end('end')
      const target = host === 'private' ? 'http://10.0.0.1/' : `http://${host}:${port}${rest}`
      response.writeHead(Number(status), { location: host === 'same' ? rest : target }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
    http = createHttp({
      allow: ['127.0.0.0/8'],
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
  })
  beforeEach(() => {
    seen = []
  })
  after(async () => {
    await http.close()
    server.closeAllConnections()
    server.close()
  })

  const call = (path: string, request: Partial<HttpRequest> = {}) =>
    http.call(
      { method: 'POST', url: `http://a.test:${port}${path}`, body: 'the body', ...request },
      { signal: new AbortController().signal, timeoutMs: 5_000 },
    )
  const refused = (promise: Promise<unknown>, message: RegExp) =>
    assert.rejects(promise, (error) => {
      assert.ok(error instanceof NodeError, String(error))
      assert.deepEqual([error.code, error.retryable], ['redirect_refused', false])
      assert.match(error.message, message)
      return true
    })

  for (const status of [307, 308]) {
    it(`with ${status} do not carry the body to another origin`, async () => {
      await refused(call(`/${status}:b.test/end`), /http:\/\/b\.test:\d+.*body_to_other_origins/)
      assert.deepEqual(
        seen.map(({ host }) => host),
        ['a.test'],
      )
    })

    it(`with ${status} carry the body to another origin if the request says so, without credentials`, async () => {
      const headers = {
        Authorization: 'Bearer hunter2',
        Cookie: 'session=hunter2',
        'X-Api-Key': 'hunter2',
        'X-Signature': 'hunter2',
        'Proxy-Authorization': 'hunter2',
        'Content-Type': 'text/plain',
        'Idempotency-Key': 'run:node',
      }
      await call(`/${status}:same/${status}:b.test/${status}:a.test/end`, {
        headers,
        query: {},
        body_to_other_origins: true,
      })
      assert.deepEqual(
        seen.map(({ method, host, body }) => [method, host, body]),
        ['a.test', 'a.test', 'b.test', 'a.test'].map((host) => ['POST', host, 'the body']),
      )
      for (const { headers } of seen.slice(0, 2)) assert.equal(headers.authorization, 'Bearer hunter2')
      for (const { headers } of seen.slice(2)) {
        assert.doesNotMatch(JSON.stringify(headers), /hunter2/)
        assert.deepEqual([headers['content-type'], headers['idempotency-key']], ['text/plain', 'run:node'])
      }
    })

    it(`with ${status} carry the body to the same origin`, async () => {
      await call(`/${status}:same/end`)
      assert.deepEqual(
        seen.map(({ url, body }) => [url, body]),
        [
          [`/${status}:same/end`, 'the body'],
          ['/end', 'the body'],
        ],
      )
    })
  }

  it('with 301 and 302 carry the body of a PUT no further than 307 does', async () => {
    for (const status of [301, 302]) await refused(call(`/${status}:b.test/end`, { method: 'PUT' }), /body/)
  })

  it('with 301, 302 and 303 turn a POST into a GET without a body, also to another origin', async () => {
    for (const status of [301, 302, 303]) await call(`/${status}:b.test/end`)
    const ends = seen.filter(({ host }) => host === 'b.test')
    assert.deepEqual(
      ends.map(({ method, body, headers }) => [method, body, headers['content-length']]),
      Array(3).fill(['GET', '', undefined]),
    )
  })

  it('of requests without a body are followed to another origin', async () => {
    assert.equal(
      (
        await http.call(
          { method: 'DELETE', url: `http://a.test:${port}/308:b.test/end` },
          { signal: new AbortController().signal, timeoutMs: 5_000 },
        )
      ).body,
      'end',
    )
  })

  it('are checked at each hop, and end after five', async () => {
    await assert.rejects(
      call('/303:b.test/302:private'),
      (error: NodeError) => error.code === 'egress_refused',
    )
    await call(`${'/307:same'.repeat(5)}/end`)
    await assert.rejects(
      call(`${'/307:same'.repeat(6)}/end`),
      (error: NodeError) => error.code === 'too_many_redirects' && /5/.test(error.message),
    )
  })

  it('are the response if they are not followed', async () => {
    const { status, headers } = await call('/307:b.test/end', { follow_redirects: false })
    assert.deepEqual([status, headers.location], [307, `http://b.test:${port}/end`])
  })

  const from = { method: 'GET', url: 'https://a.test/x', headers: {}, body: undefined }
  const refusals: [location: string, reason: RegExp][] = [
    ['http://a.test/', /https to http/],
    ['http://b.test/', /https to http/],
    ['https://user:hunter2@a.test/', /credentials/],
    ['//user@b.test/', /credentials/],
    ['ftp://a.test/', /only http and https/],
    ['javascript:alert(1)', /only http and https/],
    ['https://', /cannot be parsed/],
  ]
  for (const [location, reason] of refusals)
    it(`are refused from https://a.test/x to ${location}`, () =>
      assert.throws(
        () => nextHop(from, { status: 302, location }, { bodyToOtherOrigins: true }),
        (error: NodeError) => {
          assert.deepEqual([error.code, error.retryable], ['redirect_refused', false])
          assert.match(error.message, reason)
          assert.doesNotMatch(error.message, /hunter2/)
          return true
        },
      ))

  it('may go from http to https', () =>
    assert.equal(
      nextHop({ ...from, url: 'http://a.test/x' }, { status: 301, location: 'https://a.test/y' }, {}).url,
      'https://a.test/y',
    ))
})
