import { connect } from '../../db/postgres/connect.ts'
import { benchAccess } from './access.ts'
import { type ApiProcess, startApi } from './api-process.ts'
import { benchBatch } from './batch.ts'
import { type BenchChild, startChild } from './child.ts'
import { load, type Shot } from './load.ts'
import { batches, lists, singles, type Target, target } from './record-cases.ts'
import { inRounds, print, printRates, printTimes } from './report.ts'
import { seed } from './seed.ts'

/** Many short rounds, because the speed of a shared machine varies. */
const ROUNDS = 7
const SECONDS = 1
/** For rates; times are those of one client. */
const CLIENTS = 32
const BATCH_CLIENTS = 4
const MEMORY_REQUESTS = 100_000

export interface RecordOptions {
  /** The number of contacts in the large organization. */
  rows: number
  /** A server whose data is kept for the next bench. */
  databaseUrl?: string | undefined
  /** Only the figures whose name contains this. */
  only?: string | undefined
}

/** Each figure with `rows` contacts, with few contacts, and of a bare Koa handler that sends the same SQL. */
export async function benchRecords({ rows, databaseUrl, only = '' }: RecordOptions): Promise<void> {
  const api = await startApi(databaseUrl)
  const db = connect({ url: api.databaseUrl })
  try {
    const organizations = await seed(db, rows)
    const floor = await startChild('./floor-http.ts', [api.databaseUrl, organizations.big.id])
    try {
      const big = await target(db, api.url, organizations.big)
      const small = await target(db, api.url, organizations.small)
      await compare({ api, floor, big, small, only })
      if ('batch'.includes(only)) for (const at of [big, small]) await benchBatch(db, at)
      if ('memory'.includes(only)) await benchMemory(api, big)
    } finally {
      await floor.close()
    }
  } finally {
    // PostgreSQL ends last, with the api: it would end open connections by a 57P01, which hides the error of a bench.
    await db.close()
    await api.stop()
  }
}

interface Compared {
  api: ApiProcess
  floor: BenchChild
  big: Target
  small: Target
  only: string
}

/** Lists by the times of one client, other requests by rates, and what authentication costs. */
async function compare({ api, floor, big, small, only }: Compared): Promise<void> {
  const floorUrl = `http://127.0.0.1:${floor.ready.port}`
  const wanted = <T>(cases: Record<string, T>) =>
    Object.entries(cases).filter(([name]) => name.includes(only))
  print(
    `times of one client, at ${big.contacts} contacts, at ${small.contacts}, and of the floor at ${big.contacts}`,
  )
  for (const [name, pathsOf] of wanted(lists)) {
    const paths = { big: await pathsOf(big), small: await pathsOf(small) }
    await floor.ask(paths.big)
    const ask = (origin: string, { key }: Target, asked: string[]) => {
      let n = 0
      const headers = headersOf(key)
      return () => load(origin, 1, SECONDS, () => ({ path: asked[n++ % asked.length]!, headers }))
    }
    printTimes(
      name,
      await inRounds(ROUNDS, {
        big: ask(api.url, big, paths.big),
        small: ask(api.url, small, paths.small),
        floor: ask(floorUrl, big, paths.big),
      }),
    )
  }
  print(`requests per second of ${CLIENTS} clients (of batches ${BATCH_CLIENTS}), the same three`)
  let made = Date.now()
  for (const [name, shotOf] of wanted({ ...singles, ...batches })) {
    const clients = name in batches ? BATCH_CLIENTS : CLIENTS
    const fire = (origin: string, at: Target) => {
      const shot = shotOf(at)
      const headers = headersOf(at.key)
      return () => load(origin, clients, SECONDS, () => ({ ...shot(made++), headers }))
    }
    printRates(
      name,
      await inRounds(ROUNDS, {
        big: fire(api.url, big),
        small: fire(api.url, small),
        floor: fire(floorUrl, big),
      }),
    )
  }
  if ('access'.includes(only)) {
    const shot = singles['one: GET']!(big)
    const next = () => ({ ...shot(made++), headers: headersOf(big.key) })
    await benchAccess({ origin: api.url, pid: api.pid }, { origin: floorUrl, pid: floor.pid }, next)
  }
}

const headersOf = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

/** The resident memory of the api during many requests of all kinds. */
async function benchMemory(api: ApiProcess, big: Target): Promise<void> {
  const headers = headersOf(big.key)
  const kinds = Object.values(singles).map((shotOf) => shotOf(big))
  const paths = await lists['q of one rare word']!(big)
  let sent = Date.now()
  const shot = (): Shot => {
    const n = sent++
    const path = paths[n % paths.length]!
    return { ...(n % 100 === 0 ? { path } : kinds[n % 20 === 1 ? 1 : n % 20 === 2 ? 2 : 0]!(n)), headers }
  }
  const readings: number[] = []
  const until = sent + MEMORY_REQUESTS
  for (let part = 1; part <= 10; part++) {
    while (sent < until - MEMORY_REQUESTS * (1 - part / 10)) await load(api.url, CLIENTS, 1, shot)
    readings.push(api.memory())
  }
  print(
    `resident after each tenth of ${MEMORY_REQUESTS} requests: ${readings.map((mb) => mb.toFixed(0)).join(' ')} MB`,
  )
}
