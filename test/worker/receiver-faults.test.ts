import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Knex } from 'knex'
import { insertEvents } from '../../db/events/outbox.ts'
import { testActor } from '../support/database.ts'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { until } from '../support/until.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

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

  /** When the first of the endpoints began to fail, in ms since the epoch. */
  const firstFailure = async (endpoints: Knex.QueryBuilder): Promise<number> =>
    Math.min(
      ...(await endpoints.select('failing_since')).map((one: { failing_since: Date }) =>
        one.failing_since.getTime(),
      ),
    )

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

  it('has no address, for many events, starts a few of them and the others once it has one', async () => {
    const [names, events, concurrency] = [5, 40, 2]
    const { event } = await on.createWebhook({
      url: 'http://nowhere-0.invalid/',
      concurrency,
      retry_schedule: [600],
    })
    for (let i = 1; i < names; i++)
      await on.createWebhook({
        url: `http://nowhere-${i}.invalid/`,
        concurrency,
        retry_schedule: [600],
        events: [event],
      })
    const endpoints = on.db.system('outgoing_webhooks').whereRaw('? = any(events)', [event])
    const deliveries = (where: string) =>
      on.db
        .system('deliveries')
        .whereIn('webhook_id', endpoints.clone().select('id'))
        .whereRaw(where)
        .count('* as count')
        .then(([row]) => Number(row!.count))
    await on.db.tenant(on.api.organizationId, testActor, (tx) =>
      insertEvents(
        tx,
        Array.from({ length: events }, () => ({ name: event, data: { id: randomUUID() } })),
      ),
    )
    await until(async () => (await endpoints.clone().whereNull('backoff_until')).length === 0)
    const nodes = [{ id: 'set', type: 'set_fields', config: { fields: { a: 1 } } }]
    const run = await queueRun(on.db, on.api.organizationId, { nodes })
    assert.equal((await untilRun(on.db, run)).status, 'completed')
    // Two more looks of the relay: neither they nor the ends of attempts started others.
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    const attempted = await deliveries('attempts > 0')
    // The slots, and one delivery for each time that a backoff of five seconds has passed.
    const looks = Math.ceil((Date.now() - (await firstFailure(endpoints.clone()))) / 5_000)
    assert.ok(
      attempted <= names * (concurrency + looks),
      `${attempted} of ${names * events} deliveries were attempted`,
    )
    assert.equal(await deliveries("(status = 'delivering' or attempts > 0)"), attempted)

    for (const { id } of await endpoints.clone().select('id'))
      assert.equal((await on.app('PATCH', `/webhooks/outgoing/${id}`, { url: on.receiver.url })).status, 200)
    await until(async () => (await deliveries("status = 'queued'")) === 0)
    const left = await deliveries("next_attempt_at is not null and status = 'delivering'")
    await until(async () => (await deliveries("status = 'succeeded'")) === names * events - left)
    assert.ok(left <= names * (concurrency + looks + 2), `${left} deliveries wait for a retry`)
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
