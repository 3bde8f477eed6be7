import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A third-party server that counts the calls of runs (`/call`) and the deliveries of webhooks (`/hook`). */
export interface Outside {
  url: string
  /** The idempotency keys of the calls, by the member `run` of their bodies, one entry per call. */
  calls: Map<string, string[]>
  /** The number of arrivals of each delivery, by webhook-id. */
  deliveries: Map<string, number>
  /** Delays the responses of calls by this number of milliseconds. */
  delayCalls(milliseconds: number): void
  /** Responds with 500 to one of this many first attempts of deliveries; 0 for none. */
  failDeliveries(oneIn: number): void
  /** Holds the responses of later calls until `release`: of all, or of those whose `run` starts with `prefix`. */
  hold(prefix?: string): void
  /**
   * Number of calls whose responses are held, and whose callers wait. One that is made again counts once: its process was
   * killed, or had no CPU time to send a heartbeat.
   */
  held(): number
  release(): void
  close(): Promise<void>
}

export async function startOutside(): Promise<Outside> {
  const calls: Outside['calls'] = new Map()
  const deliveries: Outside['deliveries'] = new Map()
  /** The idempotency keys of the calls whose responses are held. */
  const held = new Map<ServerResponse, string>()
  /** Calls whose `run` starts with it are held. */
  let holding: string | undefined
  let delay = 0
  let failing = 0
  const answer = (response: ServerResponse, status = 200) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}')
  const server = createServer(async (request, response) => {
    let body = ''
    try {
      for await (const chunk of request) body += chunk
    } catch {
      return // The sender was killed.
    }
    const id = request.headers['webhook-id']
    if (typeof id === 'string') {
      const times = (deliveries.get(id) ?? 0) + 1
      deliveries.set(id, times)
      answer(response, failing > 0 && times === 1 && deliveries.size % failing === 0 ? 500 : 200)
      return
    }
    const { run } = JSON.parse(body) as { run: string }
    calls.set(run, [...(calls.get(run) ?? []), String(request.headers['idempotency-key'])])
    if (holding !== undefined && run.startsWith(holding)) {
      held.set(response, String(request.headers['idempotency-key']))
      response.on('close', () => held.delete(response))
    } else setTimeout(() => answer(response), delay)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    deliveries,
    delayCalls(milliseconds) {
      delay = milliseconds
    },
    failDeliveries(oneIn) {
      failing = oneIn
    },
    hold(prefix = '') {
      holding = prefix
    },
    held: () => new Set(held.values()).size,
    release() {
      holding = undefined
      for (const response of held.keys()) answer(response)
      held.clear()
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
