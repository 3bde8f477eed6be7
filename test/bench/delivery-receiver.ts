import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { insertEvents } from '../../db/events/outbox.ts'
import type { Database } from '../../db/postgres/connect.ts'

/** Writes events that the endpoint of the delivery benches selects. */
export async function raise(db: Database, organizationId: string, count: number): Promise<void> {
  const event = () => ({ name: 'bench.done', data: { text: 'x'.repeat(300) } })
  await db.tenant(organizationId, { type: 'system', id: null }, (tx) =>
    insertEvents(tx, Array.from({ length: count }, event)),
  )
}

/** The third party of the delivery benches. */
export interface DeliveryReceiver {
  url: string
  /** The arrival times of this many requests with distinct webhook-ids. */
  expect(count: number): Promise<number[]>
  /** Responds to this share of the requests with 503 from now on. @returns the counts of its requests. */
  fail(share: number): { requests: number; accepted: Map<string, number> }
  close(): Promise<void>
}

export async function startDeliveryReceiver(): Promise<DeliveryReceiver> {
  let arrived = (_id: string) => {}
  let failing = 0
  let got: ReturnType<DeliveryReceiver['fail']> | undefined
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const id = request.headers['webhook-id']
      if (got) got.requests++
      if (Math.random() < failing) response.statusCode = 503
      else got?.accepted.set(String(id), (got.accepted.get(String(id)) ?? 0) + 1)
      response.end('{}')
      if (id) arrived(String(id))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    expect: (count) =>
      new Promise((resolve) => {
        const times = new Map<string, number>()
        arrived = (id) => {
          times.set(id, performance.now())
          if (times.size === count) resolve([...times.values()])
        }
      }),
    fail(share) {
      failing = share
      got = { requests: 0, accepted: new Map() }
      return got
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
