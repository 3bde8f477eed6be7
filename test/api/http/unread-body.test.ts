import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { readBody } from '../../../api/http/body.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { until } from '../../support/until.ts'
import { withApi } from '../../support/with-api.ts'

const MEGABYTE = 1024 * 1024

describe('slow and refused requests', () => {
  const suite = withApi({ REQUEST_TIMEOUT: '1' })

  const open = (api: TestApi = suite.api): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1', () => resolve(socket))
      socket.once('error', reject)
      // Most of these tests wait for a closed connection.
      socket.on('error', () => {})
    })
  const head = (method: string, path: string, ...headers: string[]) =>
    [`${method} ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n')
  const received = (socket: Socket) => {
    const state = { text: '', closed: false }
    socket.on('data', (chunk) => {
      state.text += chunk
    })
    socket.once('close', () => {
      state.closed = true
    })
    return state
  }

  it('do not end an idle connection: a proxy that keeps it open for a minute sends the next request over it', async () => {
    const socket = await open()
    const state = received(socket)
    const request = head('GET', '/healthz')
    socket.write(request)
    await until(() => state.text.includes('alive'))
    // The limit of the server, longer than that of a request; Node's own is 5 s.
    assert.match(state.text, /^keep-alive: timeout=65$/im)
    // Longer than the limit of a request.
    await pause(2_500)
    assert.equal(state.closed, false)
    state.text = ''
    socket.write(request)
    await until(() => state.text.includes('alive'))
    socket.destroy()
  })

  const bodies: [name: string, header: string, chunk: Buffer][] = [
    ['with a length', `Content-Length: ${200 * MEGABYTE}`, Buffer.alloc(MEGABYTE, 32)],
    ['in chunks', 'Transfer-Encoding: chunked', Buffer.from(`100000\r\n${' '.repeat(MEGABYTE)}\r\n`)],
  ]
  for (const [name, header, chunk] of bodies)
    for (const [status, method, path, key] of [
      [401, 'POST', '/v1/objects/contacts', false],
      [404, 'POST', '/v1/nothing', true],
      [404, 'POST', '/nothing', false],
      [200, 'GET', '/healthz', false],
      [413, 'POST', '/v1/objects/contacts', true],
      [401, 'POST', '/webhooks/incoming/01890a5d-ac96-774b-bcce-b302099a8057', false],
    ] as const)
      it(`does not read on through a large body ${name}: ${status} of ${method} ${path}`, async () => {
        const socket = await open()
        const answer = received(socket)
        const authorization = key ? [`Authorization: Bearer ${suite.api.key}`] : []
        socket.write(head(method, path, header, 'Content-Type: application/json', ...authorization))
        let sent = 0
        while (!answer.closed && sent < 200) {
          if (!socket.write(chunk)) await Promise.race([onceAny(socket, 'drain', 'close'), pause(3_000)])
          if (socket.bytesWritten > sent * chunk.length) sent++
        }
        await until(() => answer.closed)
        // The kernel's buffers take some megabytes.
        assert.ok(sent < 40, `${sent} MB were taken`)
        const expected = path.startsWith('/webhooks')
          ? /^HTTP\/1.1 4\d\d /
          : new RegExp(`^HTTP/1.1 ${status} `)
        assert.match(answer.text, expected)
        assert.match(answer.text, /\r\nConnection: close\r\n/i)
      })

  for (const [status, what] of [
    [400, 'a row that is too long'],
    [404, 'an import that does not exist'],
  ] as const)
    it(`answers a client that sends all of a refused upload before it reads, and its next request: ${what}`, async () => {
      const api = await startApi(suite.db)
      const made = await api.request('POST', '/v1/imports', { body: { entity: 'contacts' } })
      const path = `/v1/imports/${status === 404 ? randomUUID() : made.body.id}/file`
      const authorization = `Authorization: Bearer ${api.key}`
      const socket = await open(api)
      socket.pause()
      socket.write(
        head('PUT', path, authorization, 'Content-Type: text/csv', `Content-Length: ${30 * MEGABYTE}`),
      )
      const commas = Buffer.alloc(MEGABYTE, ',')
      for (let sent = 0; sent < 30 && !socket.destroyed; sent++)
        if (!socket.write(commas)) await Promise.race([onceAny(socket, 'drain', 'close'), pause(5_000)])
      socket.write(head('GET', '/healthz'))
      const answer = received(socket)
      socket.resume()
      await until(() => answer.closed || answer.text.includes('HTTP/1.1 200 '))
      assert.match(answer.text, new RegExp(`^HTTP/1.1 ${status} .*HTTP/1.1 200 `, 's'))
      socket.destroy()
      await api.close()
    })

  it('keeps the connection after a refused request with a small body', async () => {
    const socket = await open()
    const answer = received(socket)
    const request = `${head('POST', '/v1/objects/contacts', 'Content-Length: 2')}{}`
    socket.write(request)
    await until(() => answer.text.includes('401'))
    socket.write(request)
    await until(() => answer.text.split('HTTP/1.1 401').length === 3)
    socket.destroy()
  })

  it('ends slow headers and slow bodies', async () => {
    const authorization = `Authorization: Bearer ${suite.api.key}`
    const slow = [
      'GET /v1/me HTTP/1.1\r\nHost: x\r\n',
      `${head('POST', '/v1/objects/contacts', authorization, 'Content-Type: application/json', 'Content-Length: 20')}{`,
    ]
    for (const start of slow) {
      const socket = await open()
      const answer = received(socket)
      socket.write(start)
      const drip = setInterval(() => socket.write('x'), 200)
      const started = performance.now()
      await until(() => answer.closed)
      const milliseconds = performance.now() - started
      clearInterval(drip)
      assert.ok(milliseconds > 900, `${milliseconds} ms`)
      assert.match(answer.text, /^HTTP\/1.1 408 /)
    }
  })

  it('bounds the time for a JSON body', async () => {
    const { createServer } = await import('node:http')
    const outcomes: unknown[] = []
    const server = createServer((request, response) => {
      readBody(request, 100, 300).then(
        () => response.end(),
        (error) => {
          outcomes.push(error.message)
          response.end()
        },
      )
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const socket = connect((server.address() as { port: number }).port, '127.0.0.1')
    socket.write(`${head('POST', '/', 'Content-Length: 20')}{`)
    await until(() => outcomes.length > 0)
    assert.deepEqual(outcomes, ['the body was not complete within the time limit'])
    socket.destroy()
    server.close()
  })

  it('closes connections above MAX_CONNECTIONS at once, and accepts new ones when others end', async () => {
    const api = await startApi(suite.db, { MAX_CONNECTIONS: '2' })
    const kept = [await open(api), await open(api)]
    const third = await open(api)
    const state = received(third)
    await until(() => state.closed)
    kept[0]!.destroy()
    await pause(100)
    assert.equal((await fetch(`${api.url}/healthz`)).status, 200)
    kept[1]!.destroy()
    await api.close()
  })
})

const onceAny = (socket: Socket, ...events: string[]) =>
  new Promise<void>((resolve) => {
    for (const event of events) socket.once(event, () => resolve())
  })
