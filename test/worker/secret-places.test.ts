import assert from 'node:assert/strict'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { createLogger } from '../../db/process/log.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { everyRow, historyText } from '../support/every-byte.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

/** Values without a telling name; each is in one place that the owner marked. */
const SENT = { 'X-Tenant-Code': 'zebra-tenant-4711', ssn: 'zebra-ssn-0815', sid: 'zebra-sid-2233' }
const ANSWERED = { header: 'zebra-answer-9981', iban: 'zebra-iban-5566', pin: 'zeb7' }
const NEEDLES = [...Object.values(SENT), ...Object.values(ANSWERED)]

describe('the secret headers and fields of an api_request', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let http: HttpClient
  let server: HttpServer
  let log = ''
  let received: { url: string; headers: Record<string, unknown>; body: string }[] = []

  before(async () => {
    db = await createTestDatabase()
    const stream = {
      write(line: string) {
        log += line
      },
    }
    api = await startApi(db, { LOG_LEVEL: 'trace' }, stream)
    http = createHttp({ allow: ['127.0.0.1/32'] })
    worker = await startWorker(db, {
      http: http.call,
      secretsKey: api.secretsKey,
      log: createLogger('worker', 'trace', stream),
    })
    server = await startHttpServer((request, response, body) => {
      received.push({ url: request.url!, headers: request.headers, body })
      const path = request.url!.split(/[/?]/)[1]
      const account = { iban: ANSWERED.iban, owner: 'Ada' }
      const answer = {
        user: { ssn: ANSWERED.pin },
        accounts: [account, { ...account, owner: `of ${ANSWERED.iban}` }],
        echo: [SENT, ANSWERED.header],
        note: 'plain',
      }
      response.writeHead(path === 'fail' ? 400 : 200, {
        'content-type': path === 'broken' ? 'application/problem+json' : 'application/json',
        'x-answer-code': ANSWERED.header,
      })
      response.end(path === 'broken' ? `${JSON.stringify(answer)}, and more` : JSON.stringify(answer))
    })
  })
  beforeEach(() => {
    received = []
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    await api?.close()
    await server?.close()
    await db?.drop()
  })

  const config = (path: string) => ({
    method: 'POST',
    url: `${server.url}/${path}`,
    headers: { 'X-Tenant-Code': SENT['X-Tenant-Code'], 'X-Other': 'shown' },
    query: { sid: SENT.sid, page: 1 },
    body: { user: { ssn: SENT.ssn, name: 'Ada' } },
    secret_headers: ['x-tenant-code', 'X-Answer-Code'],
    secret_fields: ['user.ssn', 'accounts.iban', 'sid'],
  })
  const call = (path: string, more: object = {}): NodeSpec => ({
    id: 'call',
    type: 'api_request',
    config: { ...config(path), ...more },
  })
  const run = (nodes: NodeSpec[], outputs = {}) =>
    queueRun(db, api.organizationId, {
      nodes,
      outputs,
      edges: nodes.slice(1).map(({ id }, i) => ({ from: nodes[i]!.id, handle: 'success', to: id })),
    })
  const nodeOf = (id: string) => db.system('run_nodes').where({ run_id: id, node_id: 'call' }).first()

  /** Asserts that only the stored workflow, whose author wrote the values, has them. */
  async function assertNowhere(...histories: string[]) {
    const places = await everyRow(db)
    places.delete('workflow_versions')
    assert.ok(places.get('run_nodes')!.includes('[masked]'), 'the rows were read')
    for (const id of histories) {
      await worker.client.workflow
        .getHandle(id)
        .result()
        .catch(() => {})
      places.set(id, await historyText(worker.client, id))
    }
    places.set('log', log)
    for (const [place, text] of places)
      for (const needle of NEEDLES)
        assert.ok(
          !text.includes(needle),
          `${place} has ${needle}: …${text.slice(Math.max(0, text.indexOf(needle) - 200)).slice(0, 400)}`,
        )
  }

  it('are sent and received, and masked in the input and output, where later nodes read the mask', async () => {
    const copy: NodeSpec = {
      id: 'copy',
      type: 'set_fields',
      config: { fields: { all: '{{ nodes.call.output }}' } },
    }
    const id = await run([call('ok'), copy], { all: '{{ nodes.copy.output }}' })
    const { status, error } = await untilRun(db, id)
    assert.equal(status, 'completed', JSON.stringify(error))
    const [request] = received
    assert.equal(request!.headers['x-tenant-code'], SENT['X-Tenant-Code'])
    assert.equal(request!.url, `/ok?sid=${SENT.sid}&page=1`)
    assert.deepEqual(JSON.parse(request!.body), { user: { ssn: SENT.ssn, name: 'Ada' } })
    const { input, output } = await nodeOf(id)
    assert.deepEqual(input.headers, { 'X-Tenant-Code': '[masked]', 'X-Other': 'shown' })
    assert.deepEqual(input.query, { sid: '[masked]', page: 1 })
    assert.deepEqual(input.body, { user: { ssn: '[masked]', name: 'Ada' } })
    assert.equal(output.headers['x-answer-code'], '[masked]')
    assert.deepEqual(output.body, {
      user: { ssn: '[masked]' },
      accounts: [
        { iban: '[masked]', owner: 'Ada' },
        { iban: '[masked]', owner: 'of [masked]' },
      ],
      echo: [{ 'X-Tenant-Code': '[masked]', ssn: '[masked]', sid: '[masked]' }, '[masked]'],
      note: 'plain',
    })
    await assertNowhere(`run:${id}`)
  })

  it('are masked in errors, and in a text that has no paths', async () => {
    const failed = await run([call('fail')])
    assert.equal((await untilRun(db, failed)).error?.code, 'unexpected_status')
    const schema = {
      type: 'object',
      properties: { user: { type: 'object', properties: { ssn: { type: 'string', maxLength: 2 } } } },
    }
    const unfit = await run([call('ok', { output_schema: schema })])
    assert.equal((await untilRun(db, unfit)).error?.code, 'output_invalid')
    const broken = await run([call('broken', { body: `ssn=${SENT.ssn}&a=1` })])
    assert.equal((await untilRun(db, broken)).status, 'completed')
    const { input, output } = await nodeOf(broken)
    assert.deepEqual([input.body, output.body], ['[masked]', '[masked]'])
    await assertNowhere(...[failed, unfit, broken].map((id) => `run:${id}`))
  })

  it('are masked in the items of pages', async () => {
    const { body: _, ...others } = config('ok')
    const pages = { ...others, method: 'GET', paginate: { page: {}, items: 'body.accounts', max_pages: 2 } }
    const id = await run([
      call('ok', { ...pages, body: undefined, until: '{{ page.body.note == "plain" }}' }),
    ])
    const { status, error } = await untilRun(db, id)
    assert.equal(status, 'completed', JSON.stringify(error))
    assert.equal((await nodeOf(id)).output.items[0].iban, '[masked]')
    await assertNowhere(`run:${id}`)
  })

  it('are masked in a node test and in its preview', async () => {
    const body = { node_type: 'api_request', config: config('ok') }
    const preview = await api.request('POST', '/v1/workflows/nodes/test', { body })
    assert.deepEqual(preview.body.preview.config.query, { sid: '[masked]', page: 1 })
    assert.equal(received.length, 0)
    const tested = await api.request('POST', '/v1/workflows/nodes/test', { body: { ...body, confirm: true } })
    assert.equal(tested.body.status, 'completed', JSON.stringify(tested.body))
    assert.equal(tested.body.output.body.user.ssn, '[masked]')
    for (const needle of NEEDLES)
      assert.ok(!JSON.stringify([preview.body, tested.body]).includes(needle), needle)
    await assertNowhere()
  })

  it('are refused where a later node, or paginate, would read a mask', async () => {
    const validate = async (more: object, text: string) => {
      const definition = {
        name: 'Masks',
        trigger: 'manual',
        nodes: {
          call: { type: 'api_request', config: { ...config('ok'), ...more }, on_error: 'end' },
          keep: { type: 'set_fields', config: { fields: { text } } },
        },
      }
      const { body } = await api.request('POST', '/v1/workflows/validate', {
        body: { spec: JSON.stringify(definition) },
      })
      return body.errors.map(({ path, message }: { path: string; message: string }) => `${path}: ${message}`)
    }
    const read = (path: string) => validate({}, `{{ nodes.call.output.${path} }}`)
    assert.deepEqual(await read('body.note'), [])
    assert.deepEqual(await read('body.accounts[0].owner'), [])
    for (const path of ['body.user.ssn', 'body.accounts[0].iban', "headers['x-answer-code']"])
      assert.match(String(await read(path)), /nodes\/keep.*\[masked\]/, path)
    const get = { method: 'GET', body: undefined }
    const cursor = { cursor: { path: 'body.user.ssn', parameter: 'after' }, items: 'body.accounts' }
    assert.match(String(await validate({ ...get, paginate: cursor }, 'x')), /paginate.*secret_fields/)
    const link = { link_header: 'next', items: 'body.accounts' }
    const secret = { ...get, secret_headers: ['Link'], paginate: link }
    assert.match(String(await validate(secret, 'x')), /paginate.*secret_headers/)
    const until = { ...get, paginate: { page: {} }, until: '{{ page.body.user.ssn == "1" }}' }
    assert.match(String(await validate(until, 'x')), /until.*\[masked\]/)
    assert.match(String(await validate({ secret_fields: '{{ run.id }}' }, 'x')), /has a placeholder/)
    assert.match(String(await validate({ secret_fields: ['user.*'] }, 'x')), /must name one value/)
  })
})
