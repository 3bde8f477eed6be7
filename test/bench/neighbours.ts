import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { connect } from '../../db/postgres/connect.ts'
import { createKey } from '../support/api.ts'
import { createOrganization, type TestDatabase } from '../support/database.ts'
import { startHttpServer } from '../support/http-server.ts'
import { rawMcp } from '../support/mcp.ts'
import type { TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'
import { startChild } from './child.ts'
import { median } from './load.ts'
import { type Call, clientOf } from './neighbour-client.ts'
import { print } from './report.ts'
import { fill } from './seed.ts'
import { liftLimits } from './setup.ts'

const FLOODS = [
  'lists',
  'batches',
  'mcp',
  'imports',
  'exports',
  'bulk jobs',
  'polls',
  'embeddings',
  'loops',
  'hanging calls',
  'deliveries',
]
const CONTACTS = 10_000
/** Milliseconds that a flood runs before the neighbour is measured. */
const WARM_UP_MS = 2_000

/**
 * The latency of one organization's operations while another one floods the stack with one kind of work at a time, and of
 * the same operations just before, at the median. No limit of a plan holds the flooder back, only the shares. The
 * processes and the clients share the machine, so its cores are a part of each ratio.
 */
export async function benchNeighbours(stack: TestStack, rounds: number, only = ''): Promise<void> {
  const db = connect({ url: stack.databaseUrl })
  const service = await startService()
  try {
    const [flooder, neighbour] = [await createOrganization(db), await createOrganization(db)]
    await liftLimits(db)
    await fillWithContacts(stack, { [flooder]: CONTACTS, [neighbour]: 100 })
    const keyOf = async (organization: string) => (await createKey(db as TestDatabase, organization)).key
    const operations = await operationsOf(clientOf(stack.apiUrl, await keyOf(neighbour)), service)
    const key = await keyOf(flooder)
    const names = Object.keys(operations)
    await measure(operations, 1)
    print(`${'flood'.padEnd(15)}${names.map((name) => name.padStart(23)).join('')}   ended`)
    for (const flood of FLOODS.filter((name) => name.includes(only))) {
      const idle = await measure(operations, rounds)
      const child = await startChild('./neighbour-floods.ts', [flood, stack.apiUrl, key])
      await sleep(WARM_UP_MS)
      const beside = await measure(operations, rounds)
      const { ended } = await child.ask<{ ended: number }>({})
      await child.close()
      const cells = names.map((name) => {
        const [before, now] = [median(idle[name]!), median(beside[name]!)]
        return `×${(now / before).toFixed(1)} (${before.toFixed(0)} to ${now.toFixed(0)} ms)`.padStart(23)
      })
      print(`${flood.padEnd(15)}${cells.join('')}   ${ended}`)
    }
  } finally {
    await service.close()
    await db.close()
  }
}

type Operations = Record<string, () => Promise<unknown>>

/** The times of each operation in milliseconds; the operations in turns. */
async function measure(operations: Operations, rounds: number): Promise<Record<string, number[]>> {
  const times: Record<string, number[]> = {}
  for (let round = 0; round < rounds; round++)
    for (const [name, operation] of Object.entries(operations)) {
      const sent = performance.now()
      await operation()
      times[name] = [...(times[name] ?? []), performance.now() - sent]
    }
  return times
}

/** What the neighbour does. `call` is from the request that starts a run until its call arrives. */
async function operationsOf(call: Call, service: Service): Promise<Operations> {
  const { id } = await call('POST', '/v1/objects/contacts', { last_name: 'Neighbour' })
  const nodes = {
    call: { type: 'api_request', config: { method: 'GET', url: `${service.url}/{{ run.id }}` } },
  }
  const { workflow_id } = await call('POST', '/v1/workflows', {
    spec: JSON.stringify({ name: 'Call', nodes }),
  })
  const tool = rawMcp('tools/call', { name: 'get_record', arguments: { kind: 'contacts', id } })
  return {
    GET: () => call('GET', `/v1/objects/contacts/${id}`),
    list: () => call('GET', '/v1/objects/contacts?limit=50'),
    POST: () => call('POST', '/v1/objects/notes', { body: 'A note' }),
    MCP: () => call('POST', '/mcp', tool.body, tool.headers),
    call: async () => {
      const { run_id } = await call('POST', `/v1/workflows/${workflow_id}/run`, { confirm: true })
      await service.arrival(`/${run_id}`)
    },
    export: async () => {
      const made = await call('POST', '/v1/exports', { entity: 'companies' })
      await until(async () => (await call('GET', `/v1/exports/${made.id}`)).ended_at, 'the export')
    },
  }
}

type Service = Awaited<ReturnType<typeof startService>>

/** The service that the neighbour's runs call. */
async function startService() {
  const arrived = new Set<string>()
  const waiting = new Map<string, () => void>()
  const server = await startHttpServer((request, response) => {
    arrived.add(request.url!)
    waiting.get(request.url!)?.()
    response.end('{}')
  })
  return {
    ...server,
    arrival: (path: string) =>
      new Promise<void>((resolve) => {
        if (arrived.has(path)) resolve()
        else waiting.set(path, resolve)
      }),
  }
}

async function fillWithContacts(stack: TestStack, counts: Record<string, number>): Promise<void> {
  const client = new pg.Client({ connectionString: stack.databaseUrl })
  await client.connect()
  try {
    for (const [organization, count] of Object.entries(counts)) await fill(client, organization, count, true)
    await client.query('vacuum (analyze) contacts, companies')
  } finally {
    await client.end()
  }
}
