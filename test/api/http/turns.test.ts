import { deepEqual, equal } from 'node:assert/strict'
import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'
import { createHttpServer } from '../../../api/http/server.ts'
import { inTurns } from '../../../api/http/turns.ts'
import { until } from '../../support/until.ts'

const CONFIG = {
  REQUEST_TIMEOUT: 60,
  KEEP_ALIVE_TIMEOUT: 5,
  MAX_CONNECTIONS: 1_000,
  MAX_CONNECTIONS_PER_ADDRESS: 1_000,
  TRUSTED_PROXIES: 0,
}

/**
 * Connects one client after the other, each with a request, then notifies who waits: the server accepts none meanwhile.
 */
const CLIENTS = `
const { once } = require('node:events')
const { connect } = require('node:net')
const { workerData: { port, requests, done } } = require('node:worker_threads')
const sockets = []
;(async () => {
  for (const { path, key } of requests) {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket.on('error', () => {}))
    await once(socket, 'connect')
    const head = ['GET ' + path + ' HTTP/1.1', 'Host: localhost']
    if (key) head.push('Authorization: Bearer ' + key)
    socket.write(head.join('\\r\\n') + '\\r\\n\\r\\n')
  }
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
})()
`

describe('the turns of requests', () => {
  /** What a server does with a burst of clients that all wait when it looks: `accepted`, and the paths that it begins. */
  async function burst(
    listenerOf: (server: Server, begin: RequestListener) => RequestListener,
    requests: { path: string; key?: string }[] = paths.map((path) => ({ path, key: 'a' })),
  ) {
    const seen: string[] = []
    const begin: RequestListener = (request, response) => {
      seen.push(request.url!)
      response.end()
    }
    const server = createHttpServer(CONFIG)
    server.on('connection', () => seen.push('accepted')).on('request', listenerOf(server, begin))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const done = new Int32Array(new SharedArrayBuffer(4))
    const { port } = server.address() as AddressInfo
    const clients = new Worker(CLIENTS, { eval: true, execArgv: [], workerData: { port, requests, done } })
    await new Promise((resolve) => clients.once('online', resolve))
    Atomics.wait(done, 0, 0)
    await until(() => seen.filter((one) => one !== 'accepted').length === requests.length)
    await clients.terminate()
    server.closeAllConnections()
    server.close()
    return seen
  }
  const paths = [...Array.from({ length: 20 }, (_, i) => `/${i}`), '/healthz']

  it('begin once a burst of connections is accepted, a probe of the last one before them', async () => {
    const seen = await burst((server, begin) => inTurns(server, begin))
    deepEqual(
      seen.slice(0, paths.length),
      paths.map(() => 'accepted'),
    )
    equal(seen[paths.length], '/healthz')
    deepEqual(seen.slice(paths.length + 1).sort(), paths.slice(0, -1).sort())
  })

  it('begin although connections still arrive, if they have waited for many', async () => {
    const seen = await burst((server, begin) => inTurns(server, begin, { mostAccepted: 2 }))
    equal(seen[0], 'accepted')
    equal(
      seen.slice(0, paths.length).every((one) => one === 'accepted'),
      false,
    )
  })

  it('go round the callers, however many connections one of them opens', async () => {
    const many = Array.from({ length: 20 }, () => ({ path: '/many', key: 'a' }))
    const seen = await burst((server, begin) => inTurns(server, begin), [...many, { path: '/one', key: 'b' }])
    deepEqual(seen.slice(many.length + 1, many.length + 4), ['/many', '/one', '/many'])
  })

  it('are of the path without its query where there is no credential', async () => {
    const many = Array.from({ length: 20 }, (_, i) => ({ path: `/many?signature=${i}` }))
    const seen = await burst(
      (server, begin) => inTurns(server, begin),
      [...many, { path: '/one?signature=x' }],
    )
    const began = seen.slice(many.length + 1, many.length + 4).map((path) => path.split('?')[0])
    deepEqual(began, ['/many', '/one', '/many'])
  })

  it('are those of other connections at once, where none arrives', async () => {
    const began: string[] = []
    const server = createHttpServer(CONFIG)
    const listener = inTurns(server, ({ url }) => began.push(url!))
    for (const url of ['/a', '/b']) listener({ url } as never, {} as never)
    deepEqual(began, ['/a', '/b'])
  })
})
