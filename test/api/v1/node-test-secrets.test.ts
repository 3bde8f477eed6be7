import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { createHttp, type HttpClient } from '../../../activities/http/client.ts'
import { createNodeTest } from '../../../db/runs/node-tests.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'
import { type HttpServer, startHttpServer } from '../../support/http-server.ts'
import { planted } from '../../support/planted.ts'
import { historyOf, startWorker, type TestWorker, untilRun } from '../../support/worker.ts'

describe('the secrets of a node test', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let http: HttpClient
  let server: HttpServer
  let config: Record<string, unknown>
  let received: { url: string; headers: IncomingHttpHeaders; body: string }[] = []
  /** Called while the node waits for its response. */
  let during: () => Promise<void> = async () => {}

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    http = createHttp({ allow: ['127.0.0.1/32'] })
    worker = await startWorker(db, { http: http.call, secretsKey: api.secretsKey })
    server = await startHttpServer(async (request, response, body) => {
      received.push({ url: request.url!, headers: request.headers, body })
      await during()
      response.end('ok')
    })
    config = {
      method: 'POST',
      url: `${server.url}/?token=${planted('hunter2-url')}`,
      headers: { Authorization: `Bearer ${planted('hunter2-header')}`, 'X-Other': 'Token {{ inputs.seed }}' },
      query: { api_key: planted('hunter2-query') },
      body: { password: '{{ inputs.password }}' },
    }
  })
  beforeEach(() => {
    received = []
    during = async () => {}
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    await api?.close()
    await server?.close()
    await db?.drop()
  })

  const inputs = { password: planted('hunter2-input'), seed: planted('hunter2-seed') }
  const test = (headers: Record<string, string> = {}) =>
    api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'api_request', config, inputs, confirm: true },
      headers,
    })

  /** Every row that the test can have written, as text. */
  async function stored(): Promise<string> {
    const tables = ['runs', 'run_nodes', 'run_segments', 'events', 'idempotency_keys']
    const rows = await Promise.all(
      tables.map((table) => db.system(table).select(db.system.raw('to_jsonb(??) as row', [table]))),
    )
    return JSON.stringify(rows)
  }

  it('are sealed while it runs, and removed when it has ended', async () => {
    let inProgress = ''
    let sealed: unknown
    during = async () => {
      inProgress = await stored()
      sealed = (await db.system('runs').where({ kind: 'node_test' }).first('node')).node.sealed
    }
    const { body } = await test({ 'Idempotency-Key': 'secrets' })
    assert.equal(body.status, 'completed', JSON.stringify(body))
    assert.equal(received[0]!.headers.authorization, `Bearer ${planted('hunter2-header')}`)
    assert.equal(received[0]!.headers['x-other'], `Token ${planted('hunter2-seed')}`)
    assert.equal(received[0]!.url, `/?token=${planted('hunter2-url')}&api_key=${planted('hunter2-query')}`)
    assert.deepEqual(JSON.parse(received[0]!.body), { password: planted('hunter2-input') })

    assert.match(String(sealed), /^v1\./)
    assert.doesNotMatch(inProgress, /hunter2/)
    assert.doesNotMatch(await stored(), /hunter2/)
    const row = await db.system('runs').where({ kind: 'node_test' }).first('id', 'node', 'inputs')
    assert.deepEqual([row.node, row.inputs], [{ node_type: 'api_request', title: 'API request' }, {}])
    assert.doesNotMatch(JSON.stringify(body), /hunter2/)
    assert.deepEqual(body.rendered_config.headers, { Authorization: '[masked]', 'X-Other': 'Token [masked]' })

    const id = `node-test:${row.id}`
    await worker.client.workflow.getHandle(id).result()
    const bytes = (await historyOf(worker.client, id)).map((event) => JSON.stringify(event))
    const payloads = bytes.flatMap((event) =>
      [...event.matchAll(/"data":"([\w+/=]+)"/g)].map(([, data]) => Buffer.from(data!, 'base64').toString()),
    )
    assert.ok(
      payloads.some((payload) => payload.includes(row.id)),
      'payloads are decoded',
    )
    assert.doesNotMatch([...bytes, ...payloads].join(), /hunter2/)
  })

  it('fail the test if the worker has another SECRETS_KEY', async () => {
    const id = await db.tenant(api.organizationId, testActor, (tx) =>
      createNodeTest(tx, randomBytes(32), { node_type: 'api_request', title: 'Test', config, inputs }),
    )
    const { error } = await untilRun(db, id)
    assert.equal(error?.code, 'not_opened')
    const { node } = await db.system('runs').where({ id }).first('node')
    assert.deepEqual(node, { node_type: 'api_request', title: 'Test' })
    assert.equal(received.length, 0)
  })

  it('are masked in a preview', async () => {
    const body = { node_type: 'api_request', config, inputs }
    const { body: answer } = await api.request('POST', '/v1/workflows/nodes/test', { body })
    assert.equal(answer.status, 'confirmation_required')
    assert.doesNotMatch(JSON.stringify(answer), /hunter2-(url|header|query|input)/)
    assert.equal(answer.preview.config.body.password, '[masked]')
    assert.equal(received.length, 0)
  })
})
