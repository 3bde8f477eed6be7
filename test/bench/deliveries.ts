import { connect, type Database } from '../../db/postgres/connect.ts'
import { FLAGS } from '../../worker/dev/flags.ts'
import type { TestStack } from '../support/stack.ts'
import { startChild } from './child.ts'
import { type DeliveryReceiver, raise, startDeliveryReceiver } from './delivery-receiver.ts'
import { benchDrain } from './drain.ts'
import { benchHangingEndpoint } from './hanging-endpoint.ts'
import { type LoadResult, summary } from './load.ts'
import { benchRelayCost } from './relay-cost.ts'
import { inTurns, type Pair, printPairs } from './report.ts'
import { liftLimits, ownerSession } from './setup.ts'

const ROUNDS = 3
/** Enough that the time until the first event is matched and claimed is negligible. */
const EVENTS = 1_500
/** Concurrency of the endpoint and of the floor. */
const CONCURRENCY = 50
const SECONDS = 5
const SINGLE_EVENTS = 30

/**
 * Events written at once, until all have arrived, compared with a hand-written workflow whose local activity sends one
 * request to the same receiver. Latencies are measured from the write, including the queue; for the floor, of one
 * workflow. Then: single events on an idle stack, 50 endpoints of which one hangs, `drained` events to a receiver that
 * fails half of its responses, and the cost of claims with `waiting` deliveries.
 */
export async function benchDeliveries(
  stack: TestStack,
  { drained, waiting }: { drained: number; waiting: number },
): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const organizationId = await liftLimits(db)
  const receiver = await startDeliveryReceiver()
  const post = await ownerSession(stack)
  await post('/webhooks/outgoing', {
    name: 'Bench',
    url: receiver.url,
    events: ['bench.done'],
    concurrency: CONCURRENCY,
  })
  const floor = await startChild('./floor-deliveries.ts', [stack.temporalAddress, receiver.url], FLAGS.worker)
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
  await benchDrain(stack, db, organizationId, receiver, drained)
  await receiver.close()
  await db.close()
  await benchRelayCost(waiting)
}

async function deliver(
  db: Database,
  organizationId: string,
  receiver: DeliveryReceiver,
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

/** From the write of an event to its first byte at the receiver, on an idle stack. */
async function oneByOne(
  db: Database,
  organizationId: string,
  receiver: DeliveryReceiver,
): Promise<LoadResult> {
  const times: number[] = []
  for (let n = 0; n < SINGLE_EVENTS; n++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    times.push((await deliver(db, organizationId, receiver, 1)).p50)
  }
  return summary(times, times.reduce((sum, time) => sum + time, 0) / 1_000)
}
