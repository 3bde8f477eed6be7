import { readFileSync } from 'node:fs'
import { connect } from '../../db/postgres/connect.ts'
import type { TestApi } from '../support/api.ts'
import { importsOf } from '../support/imports.ts'
import type { TestStack } from '../support/stack.ts'
import { median } from './load.ts'
import { print } from './report.ts'
import { liftLimits } from './setup.ts'

const ROUNDS = 3
const ROWS = 4_000
const BATCH = 200
const FILE_MEGABYTES = [4, 32, 32]

/** A row of an import compared with a row of a batch, in turns; and the memory of the processes during an import. */
export async function benchImports(stack: TestStack): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  await liftLimits(db)
  await db.close()
  const request = client(stack)
  const imports = importsOf({ request })

  const rates: { batch: number; imported: number }[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const people = Array.from({ length: ROWS }, (_, i) => person(round, i))
    const batch = await secondsOf(async () => {
      for (let from = 0; from < ROWS; from += BATCH) {
        const operations = people.slice(from, from + BATCH).map((data) => ({ op: 'create', data }))
        const { status } = await request('POST', '/v1/objects/contacts/batch', { body: { operations } })
        if (status !== 200) throw new Error(`a batch was answered ${status}`)
      }
    })
    const lines = people.map(({ email, custom_fields, ...rest }) =>
      [...Object.values(rest), `i${email}`, ...Object.values(custom_fields)].join(),
    )
    const file = `first_name,last_name,job_title,phone,email,custom_fields.tier,custom_fields.city\n${lines.join('\n')}\n`
    const done = await imports.run({ entity: 'contacts' }, file)
    if (done.progress.created !== ROWS) throw new Error(JSON.stringify(done.progress))
    const imported = (Date.parse(done.ended_at) - Date.parse(done.started_at)) / 1_000
    // The first round is a warm-up.
    if (round > 0) rates.push({ batch: ROWS / batch, imported: ROWS / imported })
  }
  const ratio = median(rates.map(({ batch, imported }) => batch / imported))
  print(
    `${ROWS} contacts: batch ${median(rates.map((one) => one.batch)).toFixed(0)} rows/s, import ${median(rates.map((one) => one.imported)).toFixed(0)} rows/s, cost of a row ×${ratio.toFixed(2)}`,
  )
  for (const megabytes of FILE_MEGABYTES) await weigh(stack, imports, megabytes)
}

/** With notes of 1,000 characters, to limit the time. */
async function weigh(
  stack: TestStack,
  imports: ReturnType<typeof importsOf>,
  megabytes: number,
): Promise<void> {
  const row = `Note,"${'The quick brown fox, "" and the rest. '.repeat(26)}"\n`
  const file = `title,body\n${row.repeat(Math.floor((megabytes * 1024 * 1024 - 20) / row.length))}`
  const before = memory(stack)
  const highest = { ...before }
  const timer = setInterval(() => {
    const now = memory(stack)
    for (const name of ['api', 'worker'] as const) highest[name] = Math.max(highest[name], now[name])
  }, 100)
  const from = performance.now()
  const { body } = await imports.prepare({ entity: 'notes' }, file)
  const uploaded = (performance.now() - from) / 1_000
  await imports.start(body.id)
  const done = await imports.ended(body.id, 600)
  clearInterval(timer)
  const took = (Date.parse(done.ended_at) - Date.parse(done.started_at)) / 1_000
  print(
    `${megabytes} MiB: uploaded in ${uploaded.toFixed(1)} s, ${done.progress.created} rows imported in ${took.toFixed(1)} s; resident before and at most: api ${before.api} and ${highest.api} MB, worker ${before.worker} and ${highest.worker} MB`,
  )
}

const person = (round: number, i: number) => ({
  first_name: `First${i}`,
  last_name: `Last${i}`,
  job_title: 'Engineer',
  phone: `+4144668${String(1_000 + i)}`,
  email: `r${round}-${i}@bench.example`,
  custom_fields: { tier: i % 2 ? 'gold' : 'silver', city: 'Zürich' },
})

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const from = performance.now()
  await work()
  return (performance.now() - from) / 1_000
}

/** Megabytes. Linux only, where `npm run bench` is meant to run. */
function memory(stack: TestStack): { api: number; worker: number } {
  const of = (pid: number) =>
    Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024)
  return { api: of(stack.pid('api')), worker: of(stack.pid('worker')) }
}

const client =
  (stack: TestStack): TestApi['request'] =>
  async (method, path, { body, headers } = {}) => {
    const answer = await fetch(stack.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${stack.key}`, 'Content-Type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    return {
      status: answer.status,
      headers: answer.headers,
      body: text.startsWith('{') ? JSON.parse(text) : text,
    }
  }
