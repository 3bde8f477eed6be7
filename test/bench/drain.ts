import type { Database } from '../../db/postgres/connect.ts'
import type { TestStack } from '../support/stack.ts'
import { type DeliveryReceiver, raise } from './delivery-receiver.ts'
import { print, progress } from './report.ts'
import { stackCpu } from './stack-cpu.ts'

/** With 20 retries a permanent failure is improbable. */
const RETRIES = Array.from({ length: 20 }, () => 1)
/** The share of `count` that is measured without failures, before and after. */
const FRESH = 1 / 10
const POLL_MS = 500

/**
 * Prints the time of `count` deliveries to an endpoint that fails half of the requests, the numbers of lost and of
 * doubly accepted ones, and the attempts per second as a ratio to those of deliveries that succeed at once: in a
 * backlog a retry costs no more than a first attempt.
 */
export async function benchDrain(
  stack: TestStack,
  db: Database,
  organizationId: string,
  receiver: DeliveryReceiver,
  count: number,
): Promise<void> {
  await db.system('outgoing_webhooks').update({ retry_schedule: RETRIES })
  const run = (share: number, deliveries: number) =>
    drain(stack, db, organizationId, receiver, { share, count: deliveries })
  const fresh = Math.max(1, Math.round(count * FRESH))
  const before = await run(0, fresh)
  const half = await run(0.5, count)
  const after = await run(0, fresh)
  const firsts = add(before, after)
  const twice = [...half.accepted.values()].filter((times) => times > 1).length
  print(
    `${count} deliveries, half of the answers fail: ${half.seconds.toFixed(0)} s, ${half.attempts} attempts, ${rate(half).toFixed(0)}/s; first attempts alone ${rate(firsts).toFixed(0)}/s, ratio ${(rate(half) / rate(firsts)).toFixed(2)}; ${count - half.accepted.size} lost, ${twice} accepted twice`,
  )
  print(`CPU per attempt: ${cpuOf(half)}; of first attempts alone ${cpuOf(firsts)}`)
}

interface Drained {
  seconds: number
  attempts: number
  accepted: Map<string, number>
  /** CPU time in milliseconds, by process. */
  cpu: Map<string, number>
}

async function drain(
  stack: TestStack,
  db: Database,
  organizationId: string,
  receiver: DeliveryReceiver,
  { share, count }: { share: number; count: number },
): Promise<Drained> {
  const got = receiver.fail(share)
  const cpu = stackCpu(stack)
  const started = performance.now()
  const seconds = () => (performance.now() - started) / 1_000
  await raise(db, organizationId, count)
  for (;;) {
    const open = await countOpen(db)
    if (open === 0) break
    progress(
      `${count - open} of ${count} ended, ${got.requests} attempts after ${seconds().toFixed(0)} s, ${share * 100} % fail`,
    )
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  for (const [name, ms] of stackCpu(stack)) cpu.set(name, ms - cpu.get(name)!)
  return { seconds: seconds(), attempts: got.requests, accepted: got.accepted, cpu }
}

/** The number of events not matched yet, and of deliveries that have not ended. */
async function countOpen(db: Database): Promise<number> {
  const [row] = await db
    .system('deliveries')
    .whereIn('status', ['held', 'queued', 'delivering'])
    .count<{ count: number }[]>()
  const [event] = await db.system('events').whereNull('matched_at').count<{ count: number }[]>()
  return row!.count + event!.count
}

const rate = ({ attempts, seconds }: Drained) => attempts / seconds

const add = (one: Drained, other: Drained): Drained => ({
  seconds: one.seconds + other.seconds,
  attempts: one.attempts + other.attempts,
  accepted: new Map([...one.accepted, ...other.accepted]),
  cpu: new Map([...one.cpu].map(([name, ms]) => [name, ms + other.cpu.get(name)!])),
})

function cpuOf({ cpu, attempts }: Drained): string {
  const total = [...cpu.values()].reduce((sum, ms) => sum + ms, 0)
  const each = [...cpu].map(([name, ms]) => `${name} ${(ms / attempts).toFixed(1)}`)
  return `${(total / attempts).toFixed(1)} ms (${each.join(', ')})`
}
