import assert from 'node:assert/strict'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { historyOf, queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const get = (url: string): NodeSpec => ({ id: 'get', type: 'api_request', config: { url } })
const say = (text: string): NodeSpec => ({ id: 'say', type: 'set_fields', config: { fields: { text } } })

/** Runs that call a server through the guarded HTTP client of production. */
describe('values and calls of runs', () => {
  let db: TestDatabase
  let organizationId: string
  let worker: TestWorker
  let http: HttpClient
  let server: HttpServer
  let url: string
  const requests: { body: string; key: string | undefined }[] = []

  before(async () => {
    server = await startHttpServer(async (request, response, body) => {
      requests.push({ body, key: request.headers['idempotency-key'] as string | undefined })
      const bytes = Number(new URL(request.url!, 'http://x').searchParams.get('bytes') ?? 0)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ data: 'x'.repeat(bytes) }))
    })
    url = `${server.url}/`
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    http = createHttp({ allow: ['127.0.0.1/32'] })
    worker = await startWorker(db, { http: http.call })
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    await server?.close()
    await db?.drop()
  })

  it('keeps values out of the history, however large they are', async () => {
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [
          get(`${url}?bytes=500000`),
          say('{{ nodes.get.output.body.data }}'),
          { ...say('{{ inputs.big }}'), id: 'too' },
        ],
        edges: [
          { from: 'get', handle: 'success', to: 'say' },
          { from: 'say', handle: 'success', to: 'too' },
        ],
        inputs: { big: { type: 'string' } },
        outputs: { text: '{{ nodes.say.output.text }}' },
      },
      { big: 'y'.repeat(500_000) },
    )
    const run = await untilRun(db, id)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.equal(String(run.outputs?.text).length, 500_000)
    await worker.client.workflow.getHandle(`run:${id}`).result()
    for (const event of await historyOf(worker.client, `run:${id}`)) {
      const size = JSON.stringify(event).length
      assert.ok(size < 16 * 1024, `event ${event.eventId} has ${size} bytes`)
    }
  })

  it('fails a node that receives too much for one value; its error handle is taken, and the worker continues', async () => {
    for (const [bytes, why] of [
      [1_500_000, 'output_too_large'],
      [4_500_000, 'response_too_large'],
    ] as const) {
      const id = await queueRun(db, organizationId, {
        nodes: [get(`${url}?bytes=${bytes}`), say('{{ nodes.get.error.code }}')],
        edges: [{ from: 'get', handle: 'error', to: 'say' }],
        outputs: { why: '{{ nodes.say.output.text }}' },
      })
      assert.deepEqual((await untilRun(db, id)).outputs, { why })
    }
  })

  it('fails a node with a body of 1.5 MB before it sends anything', async () => {
    const before = requests.length
    const post: NodeSpec = {
      id: 'post',
      type: 'api_request',
      config: { method: 'POST', url, body: '{{ inputs.big }}{{ inputs.big }}{{ inputs.big }}' },
    }
    const inputs = { big: 'y'.repeat(500_000) }
    const id = await queueRun(
      db,
      organizationId,
      { nodes: [post], inputs: { big: { type: 'string' } } },
      inputs,
    )
    const run = await untilRun(db, id)
    assert.deepEqual(
      [run.status, run.error?.code, run.error?.node_id],
      ['failed', 'output_too_large', 'post'],
    )
    assert.equal(requests.length, before)
    const small = await queueRun(db, organizationId, { nodes: [say('still here')] })
    assert.equal((await untilRun(db, small)).status, 'completed')
  })

  it('sends a body with its types, and the idempotency key of the node', async () => {
    const body = { n: '{{ inputs.n }}', list: ['{{ run.id }}'] }
    const post: NodeSpec = { id: 'post', type: 'api_request', config: { method: 'POST', url, body } }
    const id = await queueRun(
      db,
      organizationId,
      { nodes: [post], inputs: { n: { type: 'number' } } },
      { n: 7 },
    )
    assert.equal((await untilRun(db, id)).status, 'completed')
    const sent = requests.at(-1)!
    assert.deepEqual([JSON.parse(sent.body), sent.key], [{ n: 7, list: [id] }, `${id}:post`])
  })

  it('refuses private addresses: the node fails once, and its error handle is taken', async () => {
    for (const address of ['http://10.0.0.1/', 'http://[::1]/', 'http://169.254.169.254/latest/']) {
      const id = await queueRun(db, organizationId, {
        nodes: [get(address), say('{{ nodes.get.error.code }}')],
        edges: [{ from: 'get', handle: 'error', to: 'say' }],
        outputs: { why: '{{ nodes.say.output.text }}' },
      })
      assert.deepEqual((await untilRun(db, id)).outputs, { why: 'egress_refused' }, address)
      const row = await db.system('run_nodes').where({ run_id: id, node_id: 'get' }).first()
      assert.deepEqual([row.status, row.handle, row.attempt], ['failed', 'error', 1])
    }
  })
})
