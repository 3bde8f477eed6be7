import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { createHttp } from '../../../activities/http/client.ts'
import { EgressPolicy } from '../../../db/process/egress.ts'
import { NodeError } from '../../../workflows/language/node-error.ts'
import { PRIVATE_HOSTS } from '../../support/private-hosts.ts'
import { until } from '../../support/until.ts'

const options = () => ({ signal: new AbortController().signal, timeoutMs: 2_000 })
const code = (expected: string) => (error: unknown) => error instanceof NodeError && error.code === expected

describe('calls to URLs that users give', () => {
  let server: Server
  let port: number
  let seen: { url: string; headers: NodeJS.Dict<string | string[]> }[] = []

  before(async () => {
    server = createServer((request, response) => {
      seen.push({ url: request.url!, headers: request.headers })
      if (request.url === '/private') response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
      else if (request.url === '/other')
        response.writeHead(302, { location: `http://other.test:${port}/end` }).end()
      else if (request.url === '/loop') response.writeHead(302, { location: '/loop' }).end()
      else if (request.url === '/big') response.end('x'.repeat(5_000))
      else if (request.url === '/slow') setTimeout(() => response.end(), 3_000).unref()
      else response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    port = (server.address() as AddressInfo).port
  })
  beforeEach(() => {
    seen = []
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  it('reaches only what EGRESS_ONLY lists, and looks nothing else up', async () => {
    const asked: string[] = []
    const http = createHttp({
      allow: ['127.0.0.0/8'],
      only: ['127.0.0.0/24', 'listed.test', '*.wide.test'],
      resolve: async (host) => {
        asked.push(host)
        return [{ address: '127.0.0.1', family: 4 }]
      },
    })
    const reach = async (host: string, path = '/') =>
      (await http.call({ method: 'GET', url: `http://${host}:${port}${path}` }, options())).status
    try {
      for (const host of [
        '127.0.0.1',
        '127.1',
        'listed.test',
        'LISTED.test',
        'a.wide.test',
        'a.b.wide.test',
        'listed.test.',
      ])
        assert.equal(await reach(host), 200, host)
      for (const host of [
        '127.0.1.1',
        '[::1]',
        '8.8.8.8',
        'localhost',
        'other.test',
        'wide.test',
        'notlisted.test',
        'listed.test.evil.test',
        'xwide.test',
      ])
        await assert.rejects(reach(host), code('egress_refused'), host)
      await assert.rejects(reach('listed.test', '/other'), code('egress_refused'), 'a redirect')
      assert.ok(
        asked.every((host) => /^(?:listed\.test\.?|.+\.wide\.test)$/.test(host)),
        `${asked}`,
      )
    } finally {
      await http.close()
    }
  })

  for (const host of PRIVATE_HOSTS)
    it(`refuses ${host}`, async () => {
      const http = createHttp({ allow: [] })
      await assert.rejects(http.call({ method: 'GET', url: `http://${host}:${port}/` }, options()), (error) =>
        code('egress_refused')(error),
      )
      assert.equal(seen.length, 0)
      await http.close()
    })

  it('refuses a name that resolves to a private address, even among public ones', async () => {
    const http = createHttp({
      allow: [],
      resolve: async () => [
        { address: '93.184.216.34', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ],
    })
    await assert.rejects(
      http.call({ method: 'GET', url: `http://a.test:${port}/` }, options()),
      code('egress_refused'),
    )
    await http.close()
  })

  it('looks a name up once per connection, which prevents DNS rebinding', async () => {
    const answers = ['127.0.0.1', '10.0.0.1']
    let asked = 0
    const http = createHttp({
      allow: ['127.0.0.0/8'],
      resolve: async () => [{ address: answers[asked++]!, family: 4 }],
    })
    const request = { method: 'GET', url: `http://a.test:${port}/` }
    assert.equal((await http.call(request, options())).status, 200)
    assert.equal(asked, 1)
    server.closeAllConnections()
    // Until the client knows that its connection is closed, a call on it fails otherwise.
    await until(() => assert.rejects(http.call(request, options()), code('egress_refused')).then(() => true))
    await http.close()
  })

  it('looks a name up once for calls at the same time, so that a silent name server holds up one lookup', async () => {
    let asked = 0
    const http = createHttp({
      allow: ['127.0.0.0/8'],
      resolve: async () => {
        asked++
        await new Promise((resolve) => setTimeout(resolve, 50))
        return [{ address: '127.0.0.1', family: 4 }]
      },
    })
    const call = () => http.call({ method: 'GET', url: `http://a.test:${port}/` }, options())
    const answers = await Promise.all([call(), call(), call()])
    assert.deepEqual([answers.map(({ status }) => status), asked], [[200, 200, 200], 1])
    await http.close()
  })

  it('checks each hop of a redirect, and stops after five', async () => {
    const http = createHttp({ allow: ['127.0.0.0/8'] })
    const call = (path: string, follow_redirects = true) =>
      http.call({ method: 'GET', url: `http://127.0.0.1:${port}${path}`, follow_redirects }, options())
    await assert.rejects(call('/private'), code('egress_refused'))
    await assert.rejects(call('/loop'), code('too_many_redirects'))
    assert.equal((await call('/private', false)).status, 302)
    await http.close()
  })

  it('does not send credentials to another origin', async () => {
    const http = createHttp({
      allow: ['127.0.0.0/8'],
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    await http.call(
      {
        method: 'GET',
        url: `http://a.test:${port}/other`,
        headers: { Authorization: 'secret', 'X-Api-Key': 'secret', Accept: 'text/plain' },
      },
      options(),
    )
    assert.equal(seen[0]!.headers.authorization, 'secret')
    assert.equal(seen[1]!.headers.authorization, undefined)
    assert.equal(seen[0]!.headers['x-api-key'], 'secret')
    assert.equal(seen[1]!.headers['x-api-key'], undefined)
    assert.equal(seen[1]!.headers.accept, 'text/plain')
    await http.close()
  })

  it('bounds time and size, and refuses URLs that are not plain http', async () => {
    const http = createHttp({ allow: ['127.0.0.0/8'], maxBodyBytes: 1_000 })
    const url = `http://127.0.0.1:${port}`
    const call = (target: string, headers = {}) =>
      http.call({ method: 'GET', url: target, headers }, { ...options(), timeoutMs: 300 })
    await assert.rejects(call(`${url}/slow`), code('timeout'))
    await assert.rejects(call(`${url}/big`), code('response_too_large'))
    await assert.rejects(call('file:///etc/passwd'), code('invalid_url'))
    await assert.rejects(call(`http://user:pass@127.0.0.1:${port}/`), code('invalid_url'))
    await assert.rejects(call(url, { 'X-A': 'a\r\nX-B: b' }), code('invalid_header'))
    await assert.rejects(call('http://127.0.0.1:1/'), code('connection_failed'))
    assert.deepEqual((await call(url)).body, { ok: true })
    await http.close()
  })

  it('ends at the time limit while it connects: to a silent name server, or one that shakes no hands', async () => {
    const silent = createTcpServer(() => {})
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const http = createHttp({ allow: ['127.0.0.0/8'], resolve: () => new Promise(() => {}) })
    try {
      for (const host of [`127.0.0.1:${(silent.address() as AddressInfo).port}`, 'silent.test']) {
        const begun = performance.now()
        const call = http.call({ method: 'GET', url: `https://${host}/` }, { ...options(), timeoutMs: 300 })
        await assert.rejects(call, code('timeout'))
        const took = performance.now() - begun
        // The limit of undici is 10 s.
        assert.ok(took < 9_000, `${host}: ${took} ms`)
      }
    } finally {
      await http.close()
      silent.close()
    }
  })

  it('allows public addresses but no special range', () => {
    const policy = new EgressPolicy([])
    for (const open of ['93.184.216.34', '1.1.1.1', '2606:4700::1111', '::ffff:1.1.1.1'])
      assert.equal(policy.allows(open), true, open)
    for (const shut of [
      '100.64.0.1',
      '192.0.0.1',
      '192.0.2.1',
      '192.88.99.1',
      '198.18.0.1',
      '198.51.100.1',
      '203.0.113.1',
      '224.0.0.1',
      '255.255.255.255',
      '::a9fe:a9fe',
      '64:ff9b:1::1',
      '100::1',
      '2001::1',
      '2001:db8::1',
      '3fff::1',
      '5f00::1',
      'fec0::1',
      'ff02::1',
      'fe80::1%eth0',
    ])
      assert.equal(policy.allows(shut), false, shut)
    assert.equal(new EgressPolicy(['10.1.0.0/16']).allows('::ffff:10.1.2.3'), true)
    assert.throws(() => new EgressPolicy(['10.1']))
  })
})
