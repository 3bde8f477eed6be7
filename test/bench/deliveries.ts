import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { insertEvents } from '../../db/events/outbox.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { type LoadResult, summary } from './load.ts'
import { inTurns, printPairs } from './report.ts'
import { liftLimits, ownerSession } from './setup.ts'

const ROUNDS = 3
const EVENTS = 500
/** Concurrency of the endpoint and of the floor. */
const CONCURRENCY = 50
const SECONDS = 5

/**
 * Events written at once, until all have arrived, against a hand-written workflow whose local activity sends one
 * request to the same receiver. Latencies: from the write, queue included; of the floor, of one workflow.
 */
export async function benchDeliveries(stack: TestStack): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const organizationId = await liftLimits(db)
  const receiver = await startReceiver()
  const post = await ownerSession(stack)
  await post('/webhooks/outgoing', {
    ...{ name: 'Bench', url: receiver.url, events: ['bench.done'], concurrency: CONCURRENCY },
  })
  const floor = await startChild('./floor-deliveries.ts', [stack.temporalAddress, receiver.url])
  const ours = () => deliver(db, organizationId, receiver, EVENTS)
  await deliver(db, organizationId, receiver, 100)
  await floor.ask({ clients: 10, seconds: 1 })
  printPairs(
    'deliveries',
    await inTurns(ROUNDS, ours, () => floor.ask<LoadResult>({ clients: CONCURRENCY, seconds: SECONDS })),
  )
  await floor.close()
  await receiver.close()
  await db.close()
}

async function deliver(
  db: Database,
  organizationId: string,
  receiver: Receiver,
  count: number,
): Promise<LoadResult> {
  const started = performance.now()
  const arrived = receiver.expect(count)
  await db.tenant(organizationId, { type: 'system', id: null }, (tx) =>
    insertEvents(
      tx,
      Array.from({ length: count }, () => ({ name: 'bench.done', data: { text: 'x'.repeat(300) } })),
    ),
  )
  const times = await arrived
  return summary(
    times.map((time) => time - started),
    (performance.now() - started) / 1_000,
  )
}

interface Receiver {
  url: string
  /** The arrival times of this many requests with distinct webhook-ids. */
  expect(count: number): Promise<number[]>
  close(): Promise<void>
}

async function startReceiver(): Promise<Receiver> {
  let arrived = (_id: string) => {}
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.end('{}')
      const id = request.headers['webhook-id']
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
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
