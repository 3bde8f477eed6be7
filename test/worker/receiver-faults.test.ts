import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

const pem = (name: string) => readFileSync(new URL(`../fixtures/tls/self-signed.${name}`, import.meta.url))

interface Fault {
  /** Serves connections; the default scheme is http. */
  serve(socket: Socket): void
  scheme?: 'http' | 'https'
  /** The error of the delivery; undefined if it succeeds. */
  error?: RegExp
  http_status?: number | null
}

/** Responds once the request has arrived: an earlier response would belong to no request. */
const onRequest = (answer: (socket: Socket) => void) => (socket: Socket) => {
  socket.on('error', () => {})
  socket.once('data', () => answer(socket))
}
const raw = (text: string) => onRequest((socket) => socket.end(text))
const status = (code: number): Fault => ({
  serve: raw(`HTTP/1.1 ${code} Whatever\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n`),
  error: new RegExp(`^the receiver answered ${code}$`),
  http_status: code,
})

const FAULTS: Record<string, Fault> = {
  'accepts and never answers (half-open)': { serve: onRequest(() => {}), error: /^timeout: / },
  'resets the connection': {
    serve: onRequest((socket) => socket.resetAndDestroy()),
    error: /^connection_failed: .*(ECONNRESET|UND_ERR_SOCKET)/,
  },
  'closes the connection without an answer': {
    serve: onRequest((socket) => socket.end()),
    error: /^connection_failed: /,
  },
  'stops in the middle of the head': {
    serve: onRequest((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-')),
    error: /^timeout: /,
  },
  'sends its answer a byte at a time, for ever': {
    serve: onRequest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
      const timer = setInterval(() => socket.write('x'), 100)
      socket.on('close', () => clearInterval(timer))
    }),
    error: /^timeout: /,
  },
  'answers with an endless body': {
    serve: onRequest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const more = () => {
        while (socket.writable && socket.write('x'.repeat(16_384)));
      }
      socket.on('drain', more)
      more()
    }),
    http_status: 200,
  },
  'answers with an endless head': {
    serve: onRequest((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const more = () => {
        while (socket.writable && socket.write(`X-A: ${'x'.repeat(1_000)}\r\n`));
      }
      socket.on('drain', more)
      more()
    }),
    error: /^connection_failed: .*HEADERS_OVERFLOW/,
  },
  'does not speak HTTP': { serve: raw('220 mail.example.com ESMTP\r\n'), error: /^connection_failed: / },
  'never answers the TLS handshake': {
    scheme: 'https',
    serve: onRequest(() => {}),
    error: /^timeout: .*1000 ms/,
  },
  'speaks no TLS where the URL is https': {
    scheme: 'https',
    serve: raw('HTTP/1.1 400 Bad Request\r\n\r\n'),
    error: /^connection_failed: /,
  },
  ...Object.fromEntries(
    [301, 302, 307, 308, 400, 401, 404, 429, 500, 502, 503].map((code) => [`answers ${code}`, status(code)]),
  ),
}

describe('a delivery to a receiver that', () => {
  let on: Deliveries
  let worker: TestWorker
  before(async () => {
    on = await startDeliveries()
    worker = await startWorker(on.db, { secretsKey: on.api.secretsKey })
  })
  after(async () => {
    await worker?.stop()
    await on?.stop()
  })

  /** The only attempt of a delivery to this URL. */
  async function attempt(url: string) {
    const webhook = await on.createWebhook({ url, retry_schedule: [], timeout_ms: 1_000 })
    const delivery = await on.ended(await on.raise(webhook))
    assert.equal(delivery.attempts.length, 1)
    const [one] = delivery.attempts
    assert.ok(one.duration_ms >= 0 && one.duration_ms < 30_000 && one.started_at, 'the log is complete')
    assert.equal(one.status, delivery.status)
    assert.equal(one.error, delivery.error)
    return { ...delivery, attempt: one }
  }
  async function listen(server: Server): Promise<{ port: number; close(): void }> {
    const sockets = new Set<Socket>()
    server.on('connection', (socket) => sockets.add(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const close = () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    }
    return { port: (server.address() as AddressInfo).port, close }
  }

  for (const [what, { serve, scheme = 'http', error, http_status = null }] of Object.entries(FAULTS))
    it(`${what} ${error ? 'fails, with the reason' : 'succeeds'}`, async () => {
      const { port, close } = await listen(createServer(serve))
      const delivery = await attempt(`${scheme}://127.0.0.1:${port}/`)
      close()
      assert.equal(delivery.status, error ? 'failed' : 'succeeded')
      if (error) assert.match(delivery.error, error)
      assert.equal(delivery.attempt.http_status, http_status)
      if (!error) assert.equal(delivery.attempt.response_body.length, 20_000)
    })

  it('is down fails, and is retried until it is up', async () => {
    const { port, close } = await listen(createServer())
    close()
    const url = `http://127.0.0.1:${port}/`
    assert.match((await attempt(url)).error, /^connection_failed: .*ECONNREFUSED/)
    const id = await on.raise(await on.createWebhook({ url, retry_schedule: Array(8).fill(1) }))
    await until(async () => (await on.db.system('deliveries').where({ id }).first('error'))?.error)
    const back = createServer(raw('HTTP/1.1 204 No Content\r\n\r\n'))
    await new Promise<void>((resolve) => back.listen(port, '127.0.0.1', resolve))
    const delivery = await on.ended(id)
    back.close()
    assert.deepEqual([delivery.status, delivery.attempts.at(-1).http_status], ['succeeded', 204])
  })

  it('has a certificate that nobody trusts fails before the request is sent', async () => {
    let requests = 0
    const server = createHttpsServer({ key: pem('key'), cert: pem('crt') }, (_, response) => {
      requests++
      response.end()
    })
    const { port, close } = await listen(server)
    const { error } = await attempt(`https://127.0.0.1:${port}/`)
    close()
    assert.match(error, /^connection_failed: .*(SELF_SIGNED|ALTNAME)/)
    assert.equal(requests, 0)
  })
})
