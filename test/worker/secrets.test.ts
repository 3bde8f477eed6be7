import assert from 'node:assert/strict'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { updateOrganization } from '../../db/access/organization.ts'
import { deleteSecret, putSecret } from '../../db/access/secrets.ts'
import { createLogger } from '../../db/process/log.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { createKey, startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { everyRow, historyText } from '../support/every-byte.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { type App, signIn } from '../support/session.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const SECRET = 's3cr3t/Välue+"odd" & <ends>%41'
const DIGITS = '4938271650'
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Forbidden texts: the secrets in plain text, and in every encoding that the server echoes. */
const NEEDLES = [SECRET, DIGITS].flatMap((secret) => [
  secret,
  secret.toUpperCase(),
  Buffer.from(secret).toString('latin1'),
  JSON.stringify(secret).slice(1, -1),
  JSON.stringify(JSON.stringify(secret)).slice(3, -3),
  encodeURIComponent(secret),
  new URLSearchParams({ a: secret }).toString().slice(2),
  Buffer.from(secret).toString('hex'),
  // At each position in a group of three bytes; the first and last characters also contain bits of the neighbours.
  ...['', 'a', 'ab'].map((before) => base64(before + secret).slice(before.length + 1, -4)),
])

/** The response of the server, with the secret in every part. */
const echoes = (secret: string) => ({
  raw: secret,
  [`name ${secret}`]: [secret, { deep: `is ${secret}.` }],
  json: JSON.stringify({ secret }),
  url: `https://x.test/?a=${encodeURIComponent(secret)}`,
  form: new URLSearchParams({ secret }).toString(),
  basic: `Basic ${base64(`user:${secret}`)}`,
  hex: Buffer.from(secret).toString('hex'),
  upper: secret.toUpperCase(),
})

describe('a secret of the organization', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let http: HttpClient
  let server: HttpServer
  let admin: App
  let url: string
  let log = ''
  let received: { url: string; headers: Record<string, unknown>; body: string }[] = []
  /** Called for each request, before its response. */
  let during: () => Promise<void> = async () => {}

  before(async () => {
    db = await createTestDatabase()
    const stream = {
      write(line: string) {
        log += line
      },
    }
    api = await startApi(db, { LOG_LEVEL: 'trace' }, stream)
    admin = await signIn(db, api)
    http = createHttp({ allow: ['127.0.0.1/32'] })
    worker = await startWorker(db, {
      http: http.call,
      secretsKey: api.secretsKey,
      log: createLogger('worker', 'trace', stream),
    })
    server = await startHttpServer(async (request, response, body) => {
      received.push({ url: request.url!, headers: request.headers, body })
      await during()
      const path = request.url!.split(/[/?]/)[1]
      if (path === 'slow') return
      if (path === 'cut') {
        // A part of the body is shown, which ends in the middle of a secret.
        response.writeHead(400, { 'content-type': 'text/plain' }).end(`${'x'.repeat(1_990)}${SECRET}`)
        return
      }
      const status = path === 'fail' || (path === 'again' && received.length === 1) ? 500 : 200
      response.writeHead(status, {
        'content-type': 'application/json',
        'x-echo': Buffer.from(SECRET, 'latin1').toString('latin1'),
        'x-basic': base64(`user:${SECRET}`),
        location: `/${encodeURIComponent(SECRET)}`,
      })
      response.end(JSON.stringify({ text: echoes(SECRET), digits: echoes(DIGITS), number: Number(DIGITS) }))
    })
    url = server.url
  })
  beforeEach(async () => {
    received = []
    during = async () => {}
    await put('token', SECRET)
    await put('digits', DIGITS)
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    await api?.close()
    await server?.close()
    await db?.drop()
  })

  const put = async (name: string, value: string) => {
    const { status, body } = await admin('PUT', `/secrets/${name}`, { value })
    assert.equal(status, 200, JSON.stringify(body))
  }

  /** The secrets in every part of a request, unchanged and changed by filters. */
  const config = (path: string) => ({
    method: 'POST',
    url: `${url}/${path}/{{ secrets.digits }}?a={{ secrets.token | url_encode }}`,
    headers: {
      Authorization: 'Bearer {{ secrets.token }}',
      'X-Plain': '{{ secrets.token }}',
      'X-Basic': 'Basic {{ "user:" | append: secrets.token | base64_encode }}',
    },
    query: { b: '{{ secrets.token }}' },
    body: {
      plain: '{{ secrets.digits }}',
      text: 'is {{ secrets.token }}.',
      upper: '{{ secrets.token | upcase }}',
      start: '{{ secrets.token | slice: 0, 12 }}',
    },
  })
  const call = (path: string, more: Partial<NodeSpec> = {}): NodeSpec => ({
    id: 'call',
    type: 'api_request',
    config: config(path),
    ...more,
  })
  const run = (nodes: NodeSpec[], outputs = {}) =>
    queueRun(db, api.organizationId, {
      nodes,
      outputs,
      edges: nodes.slice(1).map(({ id }, i) => ({ from: nodes[i]!.id, handle: 'success', to: id })),
    })
  const nodeOf = (id: string, node = 'call') =>
    db.system('run_nodes').where({ run_id: id, node_id: node }).first()

  /** Asserts that neither the database nor these histories nor the logs contain a secret. */
  async function assertNowhere(...histories: string[]) {
    const places = await everyRow(db, ['secrets.sealed'])
    assert.ok(places.get('run_nodes')!.includes('[masked]'), 'the rows were read')
    for (const id of histories) {
      await worker.client.workflow
        .getHandle(id)
        .result()
        .catch(() => {})
      const text = await historyText(worker.client, id)
      assert.ok(text.includes(api.organizationId), 'payloads are decoded')
      places.set(id, text)
    }
    places.set('log', log)
    for (const [place, text] of places)
      for (const needle of NEEDLES)
        for (const form of [needle, JSON.stringify(needle).slice(1, -1)])
          assert.ok(
            !text.includes(form),
            `${place} has ${form}: …${text.slice(Math.max(0, text.indexOf(form) - 200)).slice(0, 500)}`,
          )
  }

  it('reaches the service, and is nowhere else when the node succeeds', async () => {
    const copy: NodeSpec = {
      id: 'copy',
      type: 'set_fields',
      config: { fields: { all: '{{ nodes.call.output }}' } },
    }
    const id = await run([call('ok'), copy], { all: '{{ nodes.copy.output }}' })
    const { status, error } = await untilRun(db, id)
    assert.equal(status, 'completed', JSON.stringify(error))
    const [request] = received
    assert.equal(request!.headers.authorization, Buffer.from(`Bearer ${SECRET}`, 'latin1').toString('latin1'))
    assert.equal(request!.headers['x-basic'], `Basic ${base64(`user:${SECRET}`)}`)
    assert.equal(new URL(request!.url, url).searchParams.get('a'), SECRET)
    assert.equal(new URL(request!.url, url).searchParams.get('b'), SECRET)
    assert.deepEqual(JSON.parse(request!.body), {
      plain: DIGITS,
      text: `is ${SECRET}.`,
      upper: SECRET.toUpperCase(),
      start: SECRET.slice(0, 12),
    })
    const { input, output } = await nodeOf(id)
    assert.equal(input.url, `${url}/ok/[masked]?a=[masked]`)
    assert.deepEqual(input.body, {
      plain: '[masked]',
      text: 'is [masked].',
      upper: '[masked]',
      start: '[masked]',
    })
    assert.equal(output.body.text.raw, '[masked]')
    assert.equal(output.body.number, '[masked]')
    assert.deepEqual(output.body.text['name [masked]'], ['[masked]', { deep: 'is [masked].' }])
    await assertNowhere(`run:${id}`)
  })

  it('is nowhere else when the node fails, is retried and exceeds its timeout', async () => {
    const retry = { max_attempts: 2, initial_interval: '50ms' }
    const ids = [
      await run([call('fail', { retry })]),
      await run([call('cut')]),
      await run([call('slow', { retry, timeout: '300ms' })]),
    ]
    const ends = await Promise.all(ids.map((id) => untilRun(db, id)))
    assert.deepEqual(
      ends.map(({ error }) => error?.code),
      ['unexpected_status', 'unexpected_status', 'timeout'],
    )
    received = []
    const again = await run([call('again', { retry })])
    assert.equal((await untilRun(db, again)).status, 'completed')
    assert.equal((await nodeOf(again)).attempt, 2)
    const cut = JSON.stringify((await nodeOf(ids[1]!)).error)
    assert.ok(!cut.includes(SECRET.slice(0, 6)), cut.slice(-100))
    await assertNowhere(...[...ids, again].map((id) => `run:${id}`))
  })

  it('is nowhere else after the test of a node, and in none of its answers', async () => {
    const answers = []
    for (const path of ['ok', 'fail', 'cut']) {
      const body = { node_type: 'api_request', config: config(path), confirm: true }
      const headers = { 'Idempotency-Key': path }
      answers.push((await api.request('POST', '/v1/workflows/nodes/test', { body, headers })).body)
      answers.push(
        (await api.request('POST', '/v1/workflows/nodes/test', { body: { ...body, confirm: false } })).body,
      )
    }
    assert.deepEqual(
      answers.map(({ status }) => status),
      ['completed', 'failed', 'failed'].flatMap((end) => [end, 'confirmation_required']),
    )
    assert.equal(answers[0].rendered_config.body.text, 'is [masked].')
    assert.match(answers[0].log[0].message, /POST http.*\/ok\/\[masked\]/)
    assert.match(answers[1].preview.calls[0], /POST http/)
    log += JSON.stringify(answers)
    const tests = await db.system('runs').where({ kind: 'node_test' }).pluck('id')
    await assertNowhere(...tests.map((id: string) => `node-test:${id}`))
  })

  it('is in no part, whatever a filter or the check of the config says about it', async () => {
    const long =
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkFkYSJ9.dozjgNryP4J3jVmNHl0w5NaXgL0n3I9PlFUP0THsR8U'
    await put('jwt', long)
    const configs = [
      { url: `${url}/ok?a={{ 1 | plus: secrets.jwt }}` },
      { url: `${url}/ok`, headers: { A: '{{ inputs[secrets.jwt] }}' } },
      { url, method: '{{ secrets.jwt }}' },
      { url, headers: '{{ secrets.jwt }}' },
      { url: 'http://{{ secrets.jwt }}/' },
      { url, headers: { '{{ secrets.jwt }}': 'x', B: '{{ secrets.jwt | append: "\n" }}' } },
      { url: `${url}/ok`, query: '{{ secrets.jwt }}' },
    ]
    const ids = await Promise.all(configs.map((config) => run([call('ok', { config })])))
    for (const [n, id] of ids.entries())
      assert.equal((await untilRun(db, id)).status, 'failed', JSON.stringify(configs[n]))
    const places = await everyRow(db, ['secrets.sealed'])
    for (const id of ids) {
      await worker.client.workflow
        .getHandle(`run:${id}`)
        .result()
        .catch(() => {})
      places.set(id, await historyText(worker.client, `run:${id}`))
    }
    places.set('log', log)
    for (const [place, text] of places)
      for (let start = 0; start + 8 <= long.length; start++)
        assert.ok(
          !text.includes(long.slice(start, start + 8)),
          `${place} has ${long.slice(start, start + 8)}`,
        )
    await admin('DELETE', '/secrets/jwt')
  })

  it('is masked also where a node that does not read it receives it', async () => {
    const id = await run([{ id: 'call', type: 'api_request', config: { url: `${url}/ok` } }])
    assert.equal((await untilRun(db, id)).status, 'completed')
    const { output } = await nodeOf(id)
    assert.equal(output.body.text.raw, '[masked]')
    // It has ten characters, so it is masked only in nodes that read it.
    assert.equal(output.body.digits.raw, DIGITS)
    await db.system('run_nodes').where({ run_id: id }).delete()
  })

  it('that does not exist fails the node at once, also if it is deleted between two attempts', async () => {
    const missing = await run([
      call('ok', { config: { url, headers: { A: '{{ secrets.nobody }}' } }, retry: { max_attempts: 5 } }),
    ])
    assert.deepEqual((await untilRun(db, missing)).error, {
      code: 'unknown_secret',
      message: 'There is no secret nobody: it was deleted, or never set.',
      node_id: 'call',
    })
    assert.equal((await nodeOf(missing)).attempt, 1)
    assert.equal(received.length, 0)

    during = () => db.tenant(api.organizationId, testActor, (tx) => deleteSecret(tx, 'token'))
    const retry = { max_attempts: 5, initial_interval: '50ms' }
    const deleted = await run([call('again', { retry })])
    assert.match((await untilRun(db, deleted)).error!.message, /no secret token/)
    assert.equal((await nodeOf(deleted)).attempt, 2)
    assert.equal(received.length, 1)
    await assertNowhere(`run:${missing}`, `run:${deleted}`)
  })

  it('that is renamed while a run waits ends the run by its name, and a retry goes on with the new one', async () => {
    const definition = (secret: string) => ({
      name: 'Renamed',
      trigger: { type: 'manual' as const },
      inputs: {},
      nodes: [
        { id: 'hold', type: 'wait_for_signal', config: { name: 'go' } },
        call('ok', { config: { url: `${url}/ok`, headers: { A: `{{ secrets.${secret} }}` } } }),
      ],
      edges: [{ from: 'hold', handle: 'received', to: 'call' }],
      outputs: { status: '{{ nodes.call.output.status }}' },
      settings: {},
    })
    const id = await queueRun(db, api.organizationId, definition('digits'))
    while (!(await db.system('run_waits').where({ run_id: id }).first()))
      await new Promise((resolve) => setTimeout(resolve, 20))
    await put('digits_new', DIGITS)
    assert.equal((await admin('DELETE', '/secrets/digits')).status, 200)
    const go = { body: { name: 'go' } }
    assert.equal((await api.request('POST', `/v1/runs/${id}/signal`, go)).status, 200)
    assert.deepEqual((await untilRun(db, id)).error, {
      code: 'unknown_secret',
      message: 'There is no secret digits: it was deleted, or never set.',
      node_id: 'call',
    })
    assert.equal((await nodeOf(id)).attempt, 1)
    assert.equal(received.length, 0)

    const { workflow_id } = await db.system('runs').where({ id }).first()
    const changed = { body: { definition: definition('digits_new') } }
    const saved = await api.request('PATCH', `/v1/workflows/${workflow_id}`, changed)
    assert.equal(saved.status, 200, JSON.stringify(saved.body))
    const retried = await api.request('POST', `/v1/runs/${id}/retry`, {
      body: { version: 'latest', confirm: true },
    })
    assert.equal(retried.status, 200, JSON.stringify(retried.body))
    const { status, outputs } = await untilRun(db, retried.body.run_id)
    assert.deepEqual([status, outputs], ['completed', { status: 200 }])
    assert.deepEqual(
      received.map(({ headers }) => headers.a),
      [DIGITS],
    )
    assert.ok(!JSON.stringify(await nodeOf(retried.body.run_id)).includes(DIGITS))
    await admin('DELETE', '/secrets/digits_new')
    // The response has the other secret, which this node does not read, in capitals.
    await db.system('run_nodes').where({ run_id: retried.body.run_id }).delete()
  })

  it('that is replaced is used by the next attempt, and a default stands for one that is missing', async () => {
    during = () => put('digits', '0011223344')
    const config = {
      url: `${url}/again`,
      headers: { A: '{{ secrets.digits }}', B: '{{ secrets.nobody | default: "none" }}' },
    }
    const id = await run([call('again', { config, retry: { max_attempts: 2, initial_interval: '50ms' } })])
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(
      received.map(({ headers }) => [headers.a, headers.b]),
      [
        [DIGITS, 'none'],
        ['0011223344', 'none'],
      ],
    )
  })

  it('that was sealed with another SECRETS_KEY fails the node, which names it', async () => {
    const key = Buffer.alloc(32)
    await db.tenant(api.organizationId, testActor, (tx) => putSecret(tx, key, 'token', SECRET))
    const { error } = await untilRun(db, await run([call('ok')]))
    assert.equal(error?.code, 'secret_not_opened')
    assert.match(error.message, /secret token/)
  })

  it('that is a common word is masked where it is read, and harms nothing else', async () => {
    await put('word', 'application')
    const config = { url: `${url}/ok`, headers: { A: '{{ secrets.word }}' } }
    const other: NodeSpec = { id: 'other', type: 'api_request', config: { url: `${url}/ok` } }
    const id = await run([call('ok', { config }), other])
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.equal((await nodeOf(id)).output.headers['content-type'], '[masked]/json')
    assert.equal((await nodeOf(id, 'other')).output.headers['content-type'], 'application/json')
    await admin('DELETE', '/secrets/word')
    await db.system('run_nodes').where({ run_id: id }).delete()
  })

  it('is refused in nodes that call no other service, also in a test', async () => {
    const node = { node_type: 'set_fields', config: { fields: { a: '{{ secrets.token }}' } } }
    const tested = await api.request('POST', '/v1/workflows/nodes/test', { body: { ...node, confirm: true } })
    assert.equal(tested.body.error.code, 'secrets_not_available')
    const preview = await api.request('POST', '/v1/workflows/nodes/test', { body: node })
    assert.deepEqual(preview.body.preview.warnings, ['The node cannot read secrets.'])
    const computed = { node_type: 'api_request', config: { url: '{{ secrets[inputs.a] }}' }, confirm: true }
    const refused = await api.request('POST', '/v1/workflows/nodes/test', { body: computed })
    assert.deepEqual([refused.status, refused.body.detail[0].type], [422, 'placeholder_error'])
  })

  it('needs workflows:author in a test: a key that may only run could send it anywhere', async () => {
    const { key } = await createKey(db, api.organizationId, { scopes: ['workflows:run'] })
    const body = { node_type: 'api_request', config: config('ok'), confirm: true }
    const refused = await api.request('POST', '/v1/workflows/nodes/test', { body, key })
    assert.equal(refused.status, 403)
    assert.match(refused.body.error.message, /workflows:author/)
    assert.equal(received.length, 0)
  })
})

describe('a setting of the organization', () => {
  const suite = withWorker()
  const say = (id: string, text: string): NodeSpec => ({
    id,
    type: 'set_fields',
    config: { fields: { text } },
  })

  it('is read by every node, and one that is missing fails as any unknown variable does', async () => {
    const { db, organizationId } = suite
    const env = { greeting: 'Hello', limit: 5, on: false }
    await db.tenant(organizationId, testActor, (tx) => updateOrganization(tx, { env }))
    const id = await queueRun(db, organizationId, {
      nodes: [
        say('greet', '{{ env.greeting }} {{ env.limit | plus: 1 }}'),
        { ...say('never', 'x'), when: '{{ env.on }}' },
        { ...say('fallback', '{{ env.missing | default: "none" }}') },
        { ...say('fails', '{{ env.missing }}'), on_error: 'continue' },
      ],
      edges: [
        { from: 'greet', handle: 'success', to: 'never' },
        { from: 'never', handle: 'success', to: 'fallback' },
        { from: 'fallback', handle: 'success', to: 'fails' },
      ],
      outputs: {
        greeting: '{{ nodes.greet.output.text }}',
        limit: '{{ env.limit }}',
        fallback: '{{ nodes.fallback.output.text }}',
        error: '{{ nodes.fails.error }}',
      },
    })
    const run = await untilRun(db, id)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.deepEqual(run.outputs, {
      greeting: 'Hello 6',
      limit: 5,
      fallback: 'none',
      error: {
        code: 'placeholder_error',
        message: '{{ env.missing }}: undefined variable: env.missing: env has on, limit, greeting',
        details: { path: '/fields/text' },
      },
    })
    const { status } = await db.system('run_nodes').where({ run_id: id, node_id: 'never' }).first()
    assert.equal(status, 'skipped')
  })
})
