import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { CallSlots } from '../../activities/slots/call-slots.ts'
import { inSlot } from '../../activities/slots/in-slot.ts'
import { connect } from '../../db/postgres/connect.ts'
import { SentBytes } from '../../db/postgres/sent-bytes.ts'
import { Shares } from '../../db/postgres/shares.ts'
import { cpuTime, threadTimes } from '../support/cpu-time.ts'
import { startApi } from './api-process.ts'
import { payload } from './incoming-payload.ts'
import type { Shot } from './load.ts'
import { batches, lists, singles, type Target, target } from './record-cases.ts'
import { print } from './report.ts'
import { seed } from './seed.ts'

/** Pairs of short rounds: one with shares and quotas, one without. */
const PAIRS = 80
const SELECTIONS = 1_000
/** About so many milliseconds of the api's CPU time in each round. */
const ROUND_MS = 100
const CONTACTS = 10_000
const CALLS = 200_000

/**
 * What shares and quotas cost: the CPU time of one api process for a request, with and without them in turns
 * (`shares-api.ts` has the switch). CPU time instead of wall time, because the machine has other work; pairs, because its
 * speed varies. Then what a call of a node and a transaction take in the worker.
 */
export async function benchShares(): Promise<void> {
  const api = await startApi(undefined, ['--import', 'tsx', 'test/bench/shares-api.ts'])
  const db = connect({ url: api.databaseUrl })
  try {
    const { big } = await seed(db, CONTACTS)
    const at = await target(db, api.url, big)
    for (const [name, { clients, shot }] of Object.entries(await casesOf(at)))
      await compare(name, api, clients, shot)
  } finally {
    await db.close()
    await api.stop()
  }
  await benchSlots()
  await benchTransactions()
  await benchTurns()
}

interface Case {
  clients: number
  shot: (n: number) => Shot
}

async function casesOf(at: Target): Promise<Record<string, Case>> {
  const bearer = { authorization: `Bearer ${at.key}`, 'content-type': 'application/json' }
  const ofKey = (shot: (n: number) => Omit<Shot, 'headers'>) => (n: number) => ({
    ...shot(n),
    headers: bearer,
  })
  const [firstPage] = await lists['first page']!(at)
  const post = async (path: string, body: object) => {
    const answer = await fetch(at.api + path, { method: 'POST', headers: bearer, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Record<string, string>
  }
  const { workflow_id } = await post('/v1/workflows', { spec: 'name: Bench\nnodes: {a: {type: stop}}' })
  const hook = await post('/v1/webhooks/incoming', { name: 'Bench', rate_limit: 100_000 })
  const ofHook = { 'content-type': 'application/json', 'x-webhook-secret': hook.secret! }
  const single = (name: string, clients: number) => ({ clients, shot: ofKey(singles[name]!(at)) })
  const [[batch, batchOf]] = Object.entries(batches) as [[string, (typeof batches)[string]]]
  return {
    'GET, 1 client': single('one: GET', 1),
    'GET, 32 clients': single('one: GET', 32),
    'POST, 8 clients': single('one: POST', 8),
    'PATCH, 8 clients': single('one: PATCH', 8),
    'list, 8 clients': { clients: 8, shot: ofKey(() => ({ path: firstPage! })) },
    [`${batch}, 1 client`]: { clients: 1, shot: ofKey(batchOf(at)) },
    'start of a run, 8 clients': {
      clients: 8,
      shot: ofKey(() => ({
        path: `/v1/workflows/${workflow_id}/run`,
        method: 'POST',
        body: '{"confirm":true}',
      })),
    },
    'incoming webhook, 32 clients': {
      clients: 32,
      shot: () => ({
        path: `/webhooks/incoming/${hook.id}`,
        method: 'POST',
        headers: ofHook,
        body: JSON.stringify(payload()),
      }),
    },
  }
}

type Api = Awaited<ReturnType<typeof startApi>>
/** Milliseconds of CPU time for a request, with shares and quotas and without. */
type Pair = Record<'on' | 'off', number>

async function compare(name: string, api: Api, clients: number, shot: (n: number) => Shot): Promise<void> {
  let made = Date.now()
  let refused = 0
  const pool = new Pool(api.url, { connections: clients, pipelining: 1 })
  /** Milliseconds of CPU time for each of so many requests. */
  const round = async (requests: number): Promise<number> => {
    const before = threadTimes(api.pid)
    let left = requests
    await Promise.all(
      Array.from({ length: clients }, async () => {
        while (left-- > 0) {
          const { method = 'GET', ...rest } = shot(made++)
          const answer = await pool.request({ ...rest, method })
          await answer.body.dump()
          if (answer.statusCode >= 300) refused++
        }
      }),
    )
    return (threadTimes(api.pid) - before) / requests
  }
  const flip = async () => {
    process.kill(api.pid, 'SIGUSR2')
    await sleep(20)
  }
  await round(clients * 20)
  const requests = Math.max(2 * clients, Math.ceil(ROUND_MS / (await round(clients * 20))))
  const pairs: Pair[] = []
  for (let n = 0; n < PAIRS; n++) {
    const first = await round(requests)
    await flip()
    const second = await round(requests)
    // The state stays for the next pair, which begins with the other side.
    pairs.push(n % 2 === 0 ? { on: first, off: second } : { on: second, off: first })
  }
  if (PAIRS % 2 === 1) await flip()
  await pool.close()
  report(name, pairs, requests, refused)
}

/**
 * Compares the fastest quarter of the rounds of both sides: other work of the machine only adds to the CPU time of a
 * round, by caches and switches. The interval is that of 95 % of random selections of the pairs.
 */
function report(name: string, pairs: Pair[], requests: number, refused: number): void {
  const off = fastest(pairs.map((pair) => pair.off))
  const moreOf = (some: Pair[]) =>
    fastest(some.map((pair) => pair.on)) - fastest(some.map((pair) => pair.off))
  const selections = Array.from({ length: SELECTIONS }, () =>
    moreOf(pairs.map(() => pairs[Math.floor(Math.random() * pairs.length)]!)),
  ).toSorted((a, b) => a - b)
  const percent = (ms: number) => `${((100 * ms) / off).toFixed(1)} %`
  const more = moreOf(pairs)
  const [low, high] = [
    selections[Math.floor(0.025 * SELECTIONS)]!,
    selections[Math.floor(0.975 * SELECTIONS)]!,
  ]
  print(
    `${name.padEnd(34)} CPU ${off.toFixed(3)} ms, with shares and quotas ${more.toFixed(4)} ms more: ${percent(more)} (${percent(low)} to ${percent(high)}; ${PAIRS} × 2 × ${requests} requests)${refused > 0 ? `; ${refused} answers were not 2xx, the figures are void` : ''}`,
  )
}

function fastest(times: number[]): number {
  const quarter = times.toSorted((a, b) => a - b).slice(0, Math.ceil(times.length / 4))
  return quarter.reduce((sum, ms) => sum + ms, 0) / quarter.length
}

/** The time that a call of the worker takes for its slot, beside 100 organizations that hold some. */
async function benchSlots(): Promise<void> {
  const slots = new CallSlots()
  const { signal } = new AbortController()
  for (let n = 0; n < 100; n++) await slots.take({ organizationId: `held${n}`, service: `host${n}` }, signal)
  const micros = await microseconds((n) =>
    inSlot(slots, { organizationId: `of${n % 100}`, signal }, async (reach) => reach(`host${n % 50}`)),
  )
  print(`slot of a call: ${micros.toFixed(2)} µs`)
}

/** What a transaction of an organization takes for its turn and for its bytes, in the api and in the worker. */
async function benchTransactions(): Promise<void> {
  const shares = new Shares(10, 1_000)
  const sent = new SentBytes()
  sent.reportTo(async () => {})
  const statement = { text: 'insert into contacts values ($1, $2, $3)', values: ['a', 'b', 'c'.repeat(500)] }
  const micros = await microseconds((n) =>
    shares.run(`of${n % 100}`, async () => {
      const counter = sent.counterOf(`of${n % 100}`)
      for (let i = 0; i < 5; i++) counter?.note(statement)
      counter?.committed()
    }),
  )
  print(`turn and bytes of a transaction of five statements: ${micros.toFixed(2)} µs`)
  await sent.flush()
}

/** What a transaction takes for its turn if it has to wait for one, as 32 of one organization do. */
async function benchTurns(): Promise<void> {
  const shares = new Shares(10, 1_000)
  const burst = () => Promise.all(Array.from({ length: 32 }, () => shares.run('one', async () => {})))
  print(
    `turn of a transaction, of 32 at once: ${((await microseconds(burst, CALLS / 32)) / 32).toFixed(2)} µs`,
  )
}

/** The CPU time of `work`, in microseconds. */
async function microseconds(work: (n: number) => Promise<unknown>, calls = CALLS): Promise<number> {
  for (let n = 0; n < calls / 10; n++) await work(n)
  const before = cpuTime()
  for (let n = 0; n < calls; n++) await work(n)
  return ((cpuTime() - before) * 1_000) / calls
}
