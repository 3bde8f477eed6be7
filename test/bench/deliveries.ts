import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { insertEvents } from '../../db/events/outbox.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { benchHangingEndpoint } from './hanging-endpoint.ts'
import { type LoadResult, summary } from './load.ts'
import { benchRelayCost } from './relay-cost.ts'
import { inTurns, type Pair, print, printPairs } from './report.ts'
import { liftLimits, ownerSession } from './setup.ts'

const ROUNDS = 3
const EVENTS = 500
/** Concurrency of the endpoint and of the floor. */
const CONCURRENCY = 50
const SECONDS = 5

/** Of a receiver that fails half of its answers: 20 retries make a delivery that fails for good improbable. */
const RETRIES = Array.from({ length: 20 }, () => 1)
const SINGLE_EVENTS = 30

/**
 * Events written at once, until all have arrived, against a hand-written workflow whose local activity sends one
 * request to the same receiver. Latencies: from the write, queue included; of the floor, of one workflow. Then single
 * events with nothing else to do, 50 endpoints of which one hangs, `drained` events to a receiver that fails half of its answers, and the cost of claims
 * with `waiting` deliveries.
 */
export async function benchDeliveries(
  stack: TestStack,
  { drained, waiting }: { drained: number; waiting: number },
): Promise<void> {
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
  const single: Pair[] = await inTurns(
    ROUNDS,
    () => oneByOne(db, organizationId, receiver),
    async () => floor.ask<LoadResult>({ clients: 1, seconds: 1 }),
  )
  printPairs('single events', single)
  await floor.close()
  await benchHangingEndpoint(db, organizationId, post)
  await drain(db, organizationId, receiver, drained)
  await receiver.close()
  await db.close()
  await benchRelayCost(waiting)
}

async function deliver(
  db: Database,
  organizationId: string,
  receiver: Receiver,
  count: number,
): Promise<LoadResult> {
  const started = performance.now()
  const arrived = receiver.expect(count)
  await raise(db, organizationId, count)
  const times = await arrived
  return summary(
    times.map((time) => time - started),
    (performance.now() - started) / 1_000,
  )
}

async function raise(db: Database, organizationId: string, count: number): Promise<void> {
  const event = () => ({ name: 'bench.done', data: { text: 'x'.repeat(300) } })
  await db.tenant(organizationId, { type: 'system', id: null }, (tx) =>
    insertEvents(tx, Array.from({ length: count }, event)),
  )
}

/** From the write of an event to its first byte at the receiver, with nothing else to do. */
async function oneByOne(db: Database, organizationId: string, receiver: Receiver): Promise<LoadResult> {
  const times: number[] = []
  for (let n = 0; n < SINGLE_EVENTS; n++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    times.push((await deliver(db, organizationId, receiver, 1)).p50)
  }
  return summary(times, times.reduce((sum, time) => sum + time, 0) / 1_000)
}

/** Prints how long `count` events take, of whose answers half fail, and what was lost or accepted twice. */
async function drain(db: Database, organizationId: string, receiver: Receiver, count: number): Promise<void> {
  await db.system('outgoing_webhooks').update({ retry_schedule: RETRIES })
  const accepted = receiver.failHalf()
  const started = performance.now()
  await raise(db, organizationId, count)
  const open = async () => {
    const [row] = await db
      .system('deliveries')
      .whereIn('status', ['held', 'queued', 'delivering'])
      .count<{ count: number }[]>()
    const [event] = await db.system('events').whereNull('matched_at').count<{ count: number }[]>()
    return row!.count + event!.count
  }
  while ((await open()) > 0) await new Promise((resolve) => setTimeout(resolve, 500))
  const seconds = (performance.now() - started) / 1_000
  const twice = [...accepted.values()].filter((times) => times > 1).length
  print(
    `${count} deliveries, half of the answers fail: ${seconds.toFixed(0)} s, ${(count / seconds).toFixed(0)}/s, ${count - accepted.size} lost, ${twice} accepted twice`,
  )
}

interface Receiver {
  url: string
  /** The arrival times of this many requests with distinct webhook-ids. */
  expect(count: number): Promise<number[]>
  /** Answers half of the requests with 503 from now on. @returns how often each webhook-id got a 2xx. */
  failHalf(): Map<string, number>
  close(): Promise<void>
}

async function startReceiver(): Promise<Receiver> {
  let arrived = (_id: string) => {}
  let accepted: Map<string, number> | undefined
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const id = request.headers['webhook-id']
      if (accepted && Math.random() < 0.5) response.statusCode = 503
      else if (accepted) accepted.set(String(id), (accepted.get(String(id)) ?? 0) + 1)
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
    failHalf() {
      accepted = new Map()
      return accepted
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
