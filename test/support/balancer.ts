import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './until.ts'

/** A balancer of HTTP that polls /readyz of its targets, and repeats no request. */
export interface Balancer {
  url: string
  /** Adds a target, and waits until it is in turn. */
  add(target: string): Promise<void>
  close(): void
}

const EVERY_MS = 500

export async function startBalancer(): Promise<Balancer> {
  const ready = new Map<string, boolean>()
  const poll = async (target: string) => {
    const answer = await fetch(`${target}/readyz`, { headers: { connection: 'close' } }).catch(
      () => undefined,
    )
    ready.set(target, answer?.status === 200)
  }
  const timer = setInterval(() => {
    for (const target of ready.keys()) void poll(target)
  }, EVERY_MS)
  let turn = 0
  const server = createServer((received, response) => {
    const targets = [...ready].filter(([, isReady]) => isReady).map(([target]) => target)
    const target = targets[turn++ % targets.length]
    if (!target) return void response.writeHead(503).end()
    const { method, headers, url } = received
    const sent = request(target + url, { method, headers: { ...headers, connection: 'close' }, agent: false })
    sent.on('response', (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    sent.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
    received.pipe(sent)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async add(target) {
      ready.set(target, false)
      await until(() => ready.get(target), `${target} in turn`)
    },
    close() {
      clearInterval(timer)
      server.closeAllConnections()
      server.close()
    },
  }
}
