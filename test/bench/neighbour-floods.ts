import { startEmbeddingEndpoint } from '../support/embedding.ts'
import { startHttpServer } from '../support/http-server.ts'
import { rawMcp } from '../support/mcp.ts'
import { until } from '../support/until.ts'
import { type Call, clientOf } from './neighbour-client.ts'

/** One kind of work: so many clients repeat it until the flood ends. */
interface Flood {
  clients: number
  /** @returns the work of one client. */
  prepare(call: Call, client: number): Promise<() => Promise<unknown>>
}

/**
 * The flooding organization of the bench of neighbours, in a process of its own, with the services that its work calls.
 * Arguments: the kind of work, the api, a key. It begins at once; the first message that it gets ends it.
 */
const [name, origin, key] = process.argv.slice(2) as [string, string, string]
const PER_LIST = 200
let items = 0
const outside = await startHttpServer((request, response) => {
  if (request.url === '/never') return
  // A new page of items for each poll; deliveries ignore it.
  const list = Array.from({ length: PER_LIST }, () => ({
    id: ++items,
    email: `p${process.pid}-${items}@example.com`,
  }))
  setTimeout(() => response.end(JSON.stringify(list)), request.method === 'POST' ? 200 : 0)
})
const embeddings = await startEmbeddingEndpoint()

const saved = async (call: Call, nodes: object): Promise<string> =>
  (await call('POST', '/v1/workflows', { spec: JSON.stringify({ name: `Flood ${Math.random()}`, nodes }) }))
    .workflow_id
const endOf = (call: Call, path: string) => until(async () => (await call('GET', path)).ended_at, path, 300)
const always = (work: (call: Call) => Promise<unknown>) => async (call: Call) => () => work(call)
const notes = (text: string) => ({
  operations: Array.from({ length: 200 }, (_, n) => ({
    op: 'create',
    data: { title: `Note ${n}`, body: text },
  })),
})

const floods: Record<string, Flood> = {
  lists: {
    clients: 16,
    prepare: always((call) => call('GET', '/v1/objects/contacts?q=ma&sort=email&limit=100')),
  },
  batches: {
    clients: 8,
    prepare: always((call) => call('POST', '/v1/objects/notes/batch', notes('x'.repeat(500)))),
  },
  mcp: {
    clients: 16,
    prepare: always((call) => {
      const { body, headers } = rawMcp('tools/call', {
        name: 'search_records',
        arguments: { kind: 'contacts', q: 'ma' },
      })
      return call('POST', '/mcp', body, headers)
    }),
  },
  imports: {
    clients: 3,
    prepare: always(async (call) => {
      const { id } = await call('POST', '/v1/imports', { entity: 'notes' })
      const file = `title,body\n${`Note,${'x'.repeat(500)}\n`.repeat(4_000)}`
      await call('PUT', `/v1/imports/${id}/file`, file, { 'content-type': 'text/csv' })
      await call('POST', `/v1/imports/${id}/start`, {})
      await endOf(call, `/v1/imports/${id}`)
    }),
  },
  exports: {
    clients: 4,
    prepare: always(async (call) => {
      const { id } = await call('POST', '/v1/exports', { entity: 'contacts', format: 'xlsx', names: true })
      await endOf(call, `/v1/exports/${id}`)
    }),
  },
  'bulk jobs': {
    clients: 3,
    prepare: always(async (call) => {
      const data = { tags: [`t${Math.floor(Math.random() * 1e9)}`] }
      const change = { action: 'update', query: {}, data, confirm: true }
      const { id } = await call('POST', '/v1/objects/contacts/bulk', change)
      await endOf(call, `/v1/bulk-jobs/${id}`)
    }),
  },
  polls: {
    clients: 20,
    async prepare(call, client) {
      const source = { type: 'http_list', url: `${outside.url}/list` }
      const webhook = await call('POST', '/v1/webhooks/incoming', { name: `Polled ${client}`, source })
      const path = `/v1/webhooks/incoming/${webhook.id}`
      let last: unknown = null
      return async () => {
        last = await until(
          async () => {
            const { polled_at } = await call('GET', path)
            return polled_at !== last && polled_at
          },
          'a poll',
          300,
        )
        // A source that becomes active is polled at once.
        await call('PATCH', path, { status: 'Inactive' })
        await call('PATCH', path, { status: 'Active' })
      }
    },
  },
  embeddings: {
    clients: 4,
    async prepare(call, client) {
      const path = '/v1/knowledge/collections'
      const { id } = await call('POST', path, { name: `Embedded ${process.pid} ${client}` })
      const embedding = { base_url: embeddings.base_url, model: 'small', api_key: 'a-key-of-the-bench' }
      await call('PUT', `${path}/${id}/embedding`, embedding)
      return async () => {
        const body = 'Refunds of invoices take five business days after their approval. '.repeat(3_000)
        await call('POST', `${path}/${id}/documents`, { title: 'A document', body })
        const isMade = async () => (await call('GET', `${path}/${id}`)).embedding.status === 'completed'
        await until(isMade, 'the vectors', 300)
      }
    },
  },
  loops: {
    clients: 8,
    async prepare(call) {
      const list = Array.from({ length: 500 }, (_, n) => n)
      const id = await saved(call, {
        each: { type: 'for_each', config: { items: list, concurrency: 50 }, next: { item: 'set' } },
        set: { type: 'set_fields', config: { fields: { text: '{{ item }} of {{ run.id }}' } } },
      })
      return async () => {
        const { run_id } = await call('POST', `/v1/workflows/${id}/run`, { confirm: true })
        await endOf(call, `/v1/runs/${run_id}`)
      }
    },
  },
  'hanging calls': {
    clients: 6,
    async prepare(call) {
      const list = Array.from({ length: 50 }, (_, n) => n)
      const id = await saved(call, {
        each: { type: 'for_each', config: { items: list, concurrency: 50 }, next: { item: 'call' } },
        call: { type: 'api_request', config: { method: 'GET', url: `${outside.url}/never` }, timeout: '10m' },
      })
      return async () => {
        const { run_id } = await call('POST', `/v1/workflows/${id}/run`, { confirm: true })
        await ending
        await call('POST', `/v1/runs/${run_id}/cancel`, {})
        await endOf(call, `/v1/runs/${run_id}`)
      }
    },
  },
  deliveries: {
    clients: 4,
    async prepare(call, client) {
      if (client === 0)
        await call('POST', '/v1/webhooks/outgoing', {
          name: 'Flood',
          url: `${outside.url}/hook`,
          events: ['note.created'],
          concurrency: 50,
        })
      return () => call('POST', '/v1/objects/notes/batch', notes('A note'))
    },
  },
}

let isOver = false
const ending = new Promise<void>((resolve) =>
  process.once('message', () => {
    isOver = true
    resolve()
  }),
)
const { clients, prepare } = floods[name]!
const call = clientOf(origin, key)
const works: (() => Promise<unknown>)[] = []
for (let client = 0; client < clients; client++) works.push(await prepare(call, client))
process.send!({})
let ended = 0
await Promise.all(
  works.map(async (work) => {
    while (!isOver) {
      await work()
      ended++
    }
  }),
)
process.send!({ ended })
process.once('disconnect', () => process.exit())
