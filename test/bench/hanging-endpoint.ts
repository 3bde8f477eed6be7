import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { insertEvents } from '../../db/events/outbox.ts'
import { SYSTEM } from '../../db/model/actor.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { median, summary } from './load.ts'
import { print } from './report.ts'

const ENDPOINTS = 50
const ROUNDS = 3
const SECONDS = 10
/** Events per second, to one endpoint after the other: well below the service's capacity. */
const RATE = 20
/** Number of events that wait for the hanging endpoint: more than its concurrency. */
const QUEUED = 150

interface Latencies {
  p50: number
  p99: number
}

/**
 * Prints the time from the write of an event to its arrival at 49 endpoints, while the fiftieth responds, and while it
 * hangs and has a queue; in turns.
 */
export async function benchHangingEndpoint(
  db: Database,
  organizationId: string,
  post: (path: string, body: object) => Promise<unknown>,
): Promise<void> {
  const receiver = await startReceiver()
  const raise = (numbers: number[]) =>
    db.tenant(organizationId, SYSTEM, (tx) =>
      insertEvents(
        tx,
        numbers.map((number) => ({ name: `bench.to_${number}`, data: { at: performance.now() } })),
      ),
    )
  for (let number = 0; number < ENDPOINTS; number++)
    await post('/webhooks/outgoing', {
      name: `Bench ${number}`,
      url: `${receiver.url}/${number}`,
      events: [`bench.to_${number}`],
      concurrency: 100,
      timeout_ms: 15_000,
    })
  const turn = async (): Promise<Latencies> => {
    receiver.times.length = 0
    for (let n = 0; n < SECONDS * RATE; n++) {
      void raise([n % ENDPOINTS])
      await pause(1_000 / RATE)
    }
    await pause(2_000)
    return summary([...receiver.times], SECONDS)
  }
  await turn()
  const answering: Latencies[] = []
  const hanging: Latencies[] = []
  for (let round = 0; round < ROUNDS; round++) {
    answering.push(await turn())
    receiver.hang()
    await raise(Array.from({ length: QUEUED }, () => ENDPOINTS - 1))
    await pause(1_000)
    hanging.push(await turn())
    receiver.answer()
    await pause(5_000)
  }
  const of = (turns: Latencies[], pick: keyof Latencies) => median(turns.map((one) => one[pick]))
  const shown = (turns: Latencies[]) =>
    `p50 ${of(turns, 'p50').toFixed(0)} ms, p99 ${of(turns, 'p99').toFixed(0)} ms`
  const growth = of(hanging, 'p99') / of(answering, 'p99')
  print(
    `one of ${ENDPOINTS} endpoints hangs: the others ${shown(hanging)}; while it answers ${shown(answering)}: p99 ×${growth.toFixed(2)}`,
  )
  await receiver.close()
}

interface Receiver {
  url: string
  /** Milliseconds from the write of an event to its arrival, at all endpoints except the last. */
  times: number[]
  /** The last endpoint hangs until `answer`. */
  hang(): void
  answer(): void
  close(): Promise<void>
}

async function startReceiver(): Promise<Receiver> {
  const times: number[] = []
  const held: ServerResponse[] = []
  let hangs = false
  const server = createServer(async (request, response) => {
    const now = performance.now()
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const isLast = request.url === `/${ENDPOINTS - 1}`
    if (!isLast) times.push(now - JSON.parse(Buffer.concat(chunks).toString('utf8')).data.at)
    if (isLast && hangs) held.push(response)
    else response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    times,
    hang() {
      hangs = true
    },
    answer() {
      hangs = false
      for (const response of held.splice(0)) response.end('{}')
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
