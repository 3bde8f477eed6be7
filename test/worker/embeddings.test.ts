import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey } from '../support/api.ts'
import { type EmbeddingEndpoint, startEmbeddingEndpoint } from '../support/embedding.ts'
import { withApiAndWorker } from '../support/with-api.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const COLLECTIONS = '/v1/knowledge/collections'
const API_KEY = 'planted-embedding-key-4711'

describe('the embedding of a collection', function () {
  this.timeout(60_000)
  const suite = withApiAndWorker({ EGRESS_ALLOW: '127.0.0.0/8' })
  let endpoint: EmbeddingEndpoint
  let count = 0
  before(async () => {
    endpoint = await startEmbeddingEndpoint()
  })
  after(() => endpoint.close())
  beforeEach(() => {
    endpoint.next.length = 0
    endpoint.requests.length = 0
  })

  const send = (method: string, path: string, body?: unknown, key?: string) =>
    suite.api.request(method, path, { ...(body === undefined ? {} : { body }), ...(key ? { key } : {}) })
  async function made(method: string, path: string, body?: unknown) {
    const answer = await send(method, path, body)
    ok(answer.status < 300, JSON.stringify(answer.body))
    return answer.body
  }
  const settings = (more: object = {}) => ({
    base_url: endpoint.base_url,
    model: 'small',
    api_key: API_KEY,
    ...more,
  })
  async function collection(documents: object[], embedding: object | null = settings()): Promise<string> {
    const { id } = await made('POST', COLLECTIONS, { name: `Embedded ${++count}` })
    if (embedding) await made('PUT', `${COLLECTIONS}/${id}/embedding`, embedding)
    for (const one of documents) await made('POST', `${COLLECTIONS}/${id}/documents`, one)
    return id
  }
  async function until(id: string, status: string) {
    for (;;) {
      const { embedding } = await made('GET', `${COLLECTIONS}/${id}`)
      if (embedding.status === status) return embedding
      ok(status === 'failed' || embedding.status !== 'failed', JSON.stringify(embedding))
      await pause(50)
    }
  }
  const search = (collection_id: string, q: string, mode: string, more: object = {}) =>
    send('GET', `/v1/knowledge/search?${new URLSearchParams({ q, collection_id, mode, ...more })}`)
  const titles = async (...of: Parameters<typeof search>): Promise<string[]> => {
    const { status, body } = await search(...of)
    equal(status, 200, JSON.stringify(body))
    return body.data.map(({ title }: { title: string }) => title)
  }
  const PAYMENTS = { title: 'Payments', body: 'Refunds take five business days.', tags: ['billing'] }
  const SHIPPING = { title: 'Shipping', body: 'Parcels travel three days.' }

  it('is made by a workflow, and searched by vector and hybrid', async () => {
    const id = await collection([PAYMENTS, SHIPPING])
    const embedding = await until(id, 'completed')
    deepEqual(
      [embedding.embedded, embedding.passages, embedding.error, embedding.model, 'api_key' in embedding],
      [2, 2, null, 'small', false],
    )
    equal(endpoint.requests[0]!.authorization, `Bearer ${API_KEY}`)
    deepEqual(await titles(id, 'refundcase', 'text'), [])
    const { body } = await search(id, 'refundcase', 'vector')
    deepEqual([body.data.length, body.data[0].title, body.data[0].match], [2, 'Payments', 'vector'])
    equal(body.data[0].highlight, 'Refunds take five business days.')
    ok(body.data[0].score > body.data[1].score && body.data[0].score <= 1)
    deepEqual(await titles(id, 'parcels refundcase', 'hybrid'), ['Shipping', 'Payments'])
    deepEqual(await titles(id, 'parcels', 'vector', { tags: 'billing' }), ['Payments'])
    const first = (await search(id, 'refund', 'hybrid', { limit: '1' })).body
    deepEqual([first.data.length, first.has_more], [1, true])
    const asked = endpoint.requests.length
    const next = await search(id, 'refund', 'hybrid', { limit: '1', cursor: first.next_cursor })
    ok(next.body.data[0].title !== first.data[0].title)
    equal(endpoint.requests.length, asked, 'the vector of a query is kept')
  })

  it('follows changes of documents, and another model', async () => {
    const id = await collection([PAYMENTS])
    await until(id, 'completed')
    endpoint.requests.length = 0
    const { data } = await made('GET', `${COLLECTIONS}/${id}/documents`)
    await made('PATCH', `/v1/knowledge/documents/${data[0].id}`, { body: 'Chargebacks are answered here.' })
    await made('POST', `${COLLECTIONS}/${id}/documents`, SHIPPING)
    equal((await until(id, 'completed')).embedded, 2)
    deepEqual(endpoint.requests.flatMap(({ input }) => input).sort(), [
      'Payments\nChargebacks are answered here.',
      'Shipping\nParcels travel three days.',
    ])
    const other = settings({ model: 'large', dimensions: 64 })
    await made('PUT', `${COLLECTIONS}/${id}/embedding`, other)
    const { embedded, dimensions } = await until(id, 'completed')
    deepEqual([embedded, dimensions], [2, 64])
    deepEqual(await titles(id, 'chargeback', 'vector', { limit: '1' }), ['Payments'])
    equal((await made('DELETE', `${COLLECTIONS}/${id}/embedding`)).embedding, null)
    const { rows } = await suite.db.system.raw('select from knowledge_vectors where collection_id = ?', [id])
    equal(rows.length, 0)
  })

  it('waits for an endpoint that is busy, and fails at one that refuses, until the next change', async () => {
    const id = await collection([], settings({ model: 'busy' }))
    await until(id, 'completed')
    endpoint.next.push({ status: 429, headers: { 'Retry-After': '1' } }, { status: 500 })
    await made('POST', `${COLLECTIONS}/${id}/documents`, PAYMENTS)
    equal((await until(id, 'completed')).embedded, 1)
    equal(endpoint.requests.length, 3)
    endpoint.next.push({ status: 401, body: { error: { message: `Incorrect key ${API_KEY}` } } })
    await made('POST', `${COLLECTIONS}/${id}/documents`, SHIPPING)
    const { error, embedded } = await until(id, 'failed')
    deepEqual([embedded, error.message], [1, 'the embedding endpoint answered 401: Incorrect key [masked]'])
    endpoint.next.push({ dimensions: 3 })
    await made('PUT', `${COLLECTIONS}/${id}/embedding`, settings({ model: 'busy' }))
    match((await until(id, 'failed')).error.message, /vectors of 3 dimensions, those before have 256/)
    await made('PUT', `${COLLECTIONS}/${id}/embedding`, settings({ model: 'busy' }))
    equal((await until(id, 'completed')).embedded, 2)
  })

  it('makes a search say why it has no vector', async () => {
    const id = await collection([PAYMENTS])
    await until(id, 'completed')
    endpoint.next.push({ status: 429 }, { dimensions: 3 }, { status: 200, body: { data: [] } })
    for (const reason of [/answered 429/, /3 dimensions/, /0 vectors for 1 texts/]) {
      const { status, body } = await search(id, `refund ${reason.source}`, 'hybrid')
      equal(status, 503)
      match(body.error.message, reason)
      match(body.error.hint, /mode=text/)
    }
    const without = await collection([PAYMENTS], null)
    const { status, body } = await search(without, 'refund', 'vector')
    equal(status, 422)
    match(body.detail[0].msg, /needs an embedding/)
  })

  it('sends passages only for keys that may, and a key only to its server', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['knowledge:write'] })
    const id = await collection([])
    const refused = await send('PUT', `${COLLECTIONS}/${id}/embedding`, settings(), key)
    equal(refused.status, 403)
    match(refused.body.error.message, /webhooks:write/)
    const { api_key: _, ...keyless } = settings({ base_url: 'https://other.example.com/v1' })
    const { status, body } = await send('PUT', `${COLLECTIONS}/${id}/embedding`, keyless)
    deepEqual([status, body.detail?.[0].loc], [422, ['body', 'api_key']])
    const { rows } = await suite.db.system.raw(
      'select api_key_sealed from knowledge_embeddings where id = ?',
      [id],
    )
    ok(!rows[0].api_key_sealed.includes(API_KEY))
  })

  it('is refused at a private address that the operator does not allow', async () => {
    const id = await collection([PAYMENTS], settings({ base_url: 'http://10.0.0.1/v1' }))
    match((await until(id, 'failed')).error.message, /private or special address/)
  })

  it('ranks the passages of a node', async () => {
    const id = await collection([PAYMENTS, SHIPPING])
    await until(id, 'completed')
    const nodes = ['text', 'hybrid'].map((mode) => ({
      id: mode,
      type: 'knowledge_search',
      config: { q: 'refundcase', collection: id, mode, limit: 1 },
    }))
    const outputs = { text: '{{ nodes.text.output.count }}', hybrid: '{{ nodes.hybrid.output.passages }}' }
    const edges = [{ from: 'text', handle: 'success', to: 'hybrid' }]
    const run = await untilRun(
      suite.db,
      await queueRun(suite.db, suite.api.organizationId, { nodes, edges, outputs }),
    )
    equal(run.status, 'completed', JSON.stringify(run.error))
    const { text, hybrid } = run.outputs as { text: number; hybrid: { title: string; match: string }[] }
    deepEqual([text, hybrid[0]!.title, hybrid[0]!.match], [0, 'Payments', 'vector'])
  })
})
