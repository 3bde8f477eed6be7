import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Knex } from 'knex'
import { createHttp, type HttpClient } from '../../../activities/http/client.ts'
import { createWorkflow } from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { createKey, startApi, type TestApi } from '../../support/api.ts'
import { createMember, createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'
import { until } from '../../support/until.ts'
import { startWorker, type TestWorker } from '../../support/worker.ts'

const greet: Definition = {
  name: 'Greet',
  trigger: { type: 'manual' },
  inputs: { name: { type: 'string', required: true } },
  nodes: [{ id: 'hello', type: 'set_fields', config: { fields: { text: 'Hello {{ inputs.name }}' } } }],
  edges: [],
  outputs: { text: '{{ nodes.hello.output.text }}' },
  settings: {},
}

describe('running workflows', () => {
  let db: TestDatabase
  let api: TestApi
  let worker: TestWorker
  let http: HttpClient
  let workflowId: string

  const save = (definition: Definition) =>
    db.tenant(api.organizationId, testActor, (tx) =>
      createWorkflow(tx, {
        name: definition.name,
        description: null,
        spec: null,
        definition,
        program: compile(definition),
      }),
    )
  const run = (body: object, headers: Record<string, string> = {}) =>
    api.request('POST', '/v1/workflows/run-by-name', { body, headers })

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db, { TEMPORAL_UI_URL: 'http://localhost:8233' })
    http = createHttp({ allow: ['127.0.0.1/32'] })
    worker = await startWorker(db, { http: http.call, secretsKey: api.secretsKey })
    workflowId = (await save(greet)).id
    await save({ ...greet, name: 'Twice' })
    await save({ ...greet, name: 'Twice' })
    await save({
      ...greet,
      name: 'Fails',
      inputs: {},
      nodes: [{ id: 'no', type: 'stop', config: { status: 'failed', message: 'No.' } }],
      outputs: {},
    })
  })
  after(async () => {
    await worker?.stop()
    await http?.close()
    await api?.close()
    await db?.drop()
  })

  it('names the field that was meant by an unknown one', async () => {
    const { status, body } = await run({ name: 'Greet', confirmed: true, imputs: {} })
    const detail = body.detail.map(({ loc, hint }: { loc: string[]; hint: string }) => [loc[1], hint])
    assert.deepEqual(
      [status, detail],
      [
        422,
        [
          ['confirmed', 'did you mean confirm?'],
          ['imputs', 'did you mean inputs?'],
        ],
      ],
    )
  })

  it('previews without confirm, and starts no run', async () => {
    const { status, body, headers } = await run({ name: 'Greet', inputs: { name: 'Ada' } })
    assert.equal(status, 200)
    assert.deepEqual([body.status, body.confirmed], ['confirmation_required', false])
    assert.deepEqual(body.preview.nodes, [
      {
        id: 'hello',
        type: 'set_fields',
        title: 'hello',
        effect: 'pure',
        reach: 'runs',
        config: { fields: { text: 'Hello Ada' } },
        calls: [],
      },
    ])
    assert.deepEqual(body.preview.edges, [])
    assert.deepEqual(body.preview.inputs, { name: 'Ada' })
    assert.equal(headers.get('etag'), '"1"')
    assert.equal((await api.request('GET', '/v1/runs')).body.total, 0)
  })

  it('previews the edges; both branches of a condition never run', async () => {
    const spec = `name: Branches
nodes:
  which: {type: condition, config: {conditions: [{left: "{{ run.id }}", operator: eq, right: x}]}, next: {"true": a, "false": b}}
  a: {type: emit_event, config: {event: branch.a}}
  b: {type: emit_event, config: {event: branch.b}}
outputs: {a: "{{ nodes.a.status }}", b: "{{ nodes.b.status }}"}
`
    const { workflow_id } = (await api.request('POST', '/v1/workflows', { body: { spec } })).body
    const start = (body: object) =>
      api.request('POST', `/v1/workflows/${workflow_id}/run`, { body, headers: { Prefer: 'wait=10' } })
    assert.deepEqual((await start({})).body.preview.edges, [
      { from: 'which', handle: 'true', to: 'a' },
      { from: 'which', handle: 'false', to: 'b' },
    ])
    const { outputs } = (await start({ confirm: true })).body
    assert.deepEqual(outputs, { a: 'skipped', b: 'completed' })
  })

  it('answers with the outputs with Prefer: wait', async () => {
    const { status, body } = await run(
      { name: 'Greet', inputs: { name: 'Ada' }, confirm: true },
      { Prefer: 'wait=10' },
    )
    assert.equal(status, 200)
    assert.deepEqual(
      [body.status, body.outputs, body.workflow_id],
      ['completed', { text: 'Hello Ada' }, workflowId],
    )
    assert.equal(body.links.self, `/v1/runs/${body.run_id}`)
    assert.match(body.links.temporal_ui, /^http:\/\/localhost:8233\/namespaces\/default\/workflows\/run%3A/)

    const found = await api.request('GET', body.links.self)
    assert.equal(found.status, 200)
    assert.deepEqual(
      found.body.nodes.map((node: { node_id: string; output: unknown }) => [node.node_id, node.output]),
      [['hello', { text: 'Hello Ada' }]],
    )
    const list = await api.request('GET', '/v1/runs?status=completed&limit=1')
    assert.equal(list.body.data[0].run_id, body.run_id)
    assert.ok(!('outputs' in list.body.data[0]))
  })

  describe('after the first start', () => {
    const spec = (name: string, inputs: string, text = 'old') =>
      `name: ${name}\ninputs: {${inputs}}\nnodes:\n  hello: {type: set_fields, config: {fields: {text: ${text}}}}\noutputs: {text: "{{ nodes.hello.output.text }}"}\n`
    const saved = async (name: string, inputs = 'a: {type: string}') =>
      (await api.request('POST', '/v1/workflows', { body: { spec: spec(name, inputs) } })).body
        .workflow_id as string
    const start = (name: string, headers: Record<string, string> = {}) =>
      run({ name, inputs: { a: 'x' }, confirm: true }, { Prefer: 'wait=10', ...headers })

    it('sends one statement', async () => {
      await saved('Known')
      await start('Known')
      const sent: string[] = []
      const count = ({ sql }: { sql: string }) => sent.push(sql)
      const client = await db.tenant(api.organizationId, testActor, async ({ trx }) => clientOf(trx))
      client.on('query', count)
      const { status } = await run({ name: 'Known', inputs: { a: 'x' }, confirm: true })
      // The worker sends those of its segments on the same pool.
      const starts = sent.filter((sql) => /\bworkflows\b|insert into runs\b/.test(sql))
      client.off('query', count)
      assert.equal(status, 200)
      assert.equal(starts.length, 1, starts.join('\n'))
    })

    it('runs the version that is current by then, with its inputs', async () => {
      const id = await saved('Newer')
      assert.equal((await start('Newer')).body.workflow_version, 1)
      await api.request('POST', `/v1/workflows/${id}/run`, { body: { inputs: { a: 'x' }, confirm: true } })
      const change = (inputs: string) =>
        api.request('PATCH', `/v1/workflows/${id}`, { body: { spec: spec('Newer', inputs, 'new') } })
      assert.equal((await change('a: {type: string}')).status, 200)
      const { body, headers } = await start('Newer')
      assert.deepEqual([body.workflow_version, body.outputs], [2, { text: 'new' }])
      assert.equal(headers.get('etag'), '"2"')
      const byId = await api.request('POST', `/v1/workflows/${id}/run`, {
        body: { inputs: { a: 'x' }, confirm: true },
      })
      assert.equal(byId.body.workflow_version, 2)
      assert.equal((await start('Newer', { 'If-Match': '"1"' })).status, 412)
      assert.equal((await start('Newer', { 'If-Match': '"2"' })).status, 200)
      await change('a: {type: string}, b: {type: string, required: true}')
      const refused = await start('Newer')
      assert.deepEqual([refused.status, refused.body.detail?.[0]?.type], [422, 'missing'])
      await api.request('POST', `/v1/workflows/${id}/activate`)
      await change('a: {type: number}')
      assert.equal((await start('Newer')).body.detail?.[0]?.type, 'missing', 'of the active version')
    })

    it('finds no workflow that was renamed or deleted, and no single one of two', async () => {
      const id = await saved('Before')
      await start('Before')
      await api.request('PATCH', `/v1/workflows/${id}`, {
        body: { spec: spec('After', 'a: {type: string}') },
      })
      assert.equal((await start('Before')).status, 404)
      assert.equal((await start('After')).status, 200)
      const other = await saved('After')
      assert.equal((await start('After')).body.error?.type, 'ambiguous_name')
      await api.request('DELETE', `/v1/workflows/${other}`)
      const again = await start('After')
      assert.deepEqual([again.status, again.body.workflow_id], [200, id])
      await api.request('DELETE', `/v1/workflows/${id}`)
      assert.equal((await start('After')).status, 404)
    })
  })

  it('answers immediately without Prefer: wait', async () => {
    const { body } = await run({ name: 'Greet', inputs: { name: 'Ada' }, confirm: true })
    assert.equal(body.status, 'queued')
  })

  it('waits also with an Idempotency-Key, and replays the answer without a second run', async () => {
    const send = () =>
      run(
        { name: 'Greet', inputs: { name: 'Once' }, confirm: true },
        { Prefer: 'wait=10', 'Idempotency-Key': 'greet-once' },
      )
    const first = await send()
    assert.deepEqual([first.status, first.body.status], [200, 'completed'])
    assert.deepEqual(first.body.outputs, { text: 'Hello Once' })
    const again = await send()
    assert.equal(again.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual(again.body, first.body)
    const { rows } = await db.system.raw(
      "select count(*)::int as n from runs where inputs ->> 'name' = 'Once'",
    )
    assert.equal(rows[0].n, 1)
  })

  it('tests a node once with an Idempotency-Key', async () => {
    const body = { node_type: 'emit_event', config: { event: 'invoice.paid', data: { n: 1 } }, confirm: true }
    const send = () =>
      api.request('POST', '/v1/workflows/nodes/test', { body, headers: { 'Idempotency-Key': 'node-once' } })
    const first = await send()
    assert.deepEqual([first.status, first.body.status], [200, 'completed'], JSON.stringify(first.body))
    assert.deepEqual((await send()).body, first.body)
    assert.equal((await db.system('events').where({ name: 'invoice.paid' })).length, 1)
  })

  const waiting: [what: string, path: string, bodyOf: (config: object) => object | Promise<object>][] = [
    ['a node is tested', '/v1/workflows/nodes/test', (config) => ({ node_type: 'api_request', config })],
    [
      'a workflow is run',
      '/v1/workflows/run-by-name',
      async (config) => {
        const nodes = [{ id: 'slow', type: 'api_request', config }] as Definition['nodes']
        await save({ ...greet, name: 'Calls slowly', inputs: {}, outputs: {}, nodes })
        return { name: 'Calls slowly' }
      },
    ],
  ]
  for (const [what, path, bodyOf] of waiting)
    it(`answers a retry with the outcome if the client disconnected while ${what}`, async () => {
      let calls = 0
      const client = new AbortController()
      const server = createServer((_, res) => {
        calls++
        client.abort()
        setTimeout(() => res.setHeader('content-type', 'application/json').end('{"done":true}'), 300)
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      try {
        const config = { method: 'GET', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
        const body = { ...(await bodyOf(config)), confirm: true }
        const headers = { 'Idempotency-Key': 'hung-up', Prefer: 'wait=60' }
        const sent = { ...headers, authorization: `Bearer ${api.key}`, 'content-type': 'application/json' }
        await assert.rejects(
          fetch(api.url + path, {
            method: 'POST',
            headers: sent,
            body: JSON.stringify(body),
            signal: client.signal,
          }),
        )
        const retry = () => api.request('POST', path, { body, headers })
        const answer = await until(async () => {
          const again = await retry()
          return again.status !== 409 && again
        })
        assert.deepEqual([answer.status, answer.body.status, calls], [200, 'completed', 1])
      } finally {
        server.close()
      }
    })

  it('reports the duration of each node, from start to end', async () => {
    await save({
      ...greet,
      name: 'Takes a while',
      inputs: {},
      outputs: {},
      nodes: [
        { id: 'light', type: 'set_fields', config: { fields: {} } },
        {
          id: 'twice',
          type: 'api_request',
          config: { method: 'GET', url: 'http://127.0.0.1:1/' },
          retry: { max_attempts: 2, initial_interval: '300ms' },
        },
      ],
      edges: [{ from: 'light', handle: 'success', to: 'twice' }],
    })
    const { body } = await run({ name: 'Takes a while', confirm: true }, { Prefer: 'wait=10' })
    assert.equal(body.status, 'failed')
    const { nodes } = (await api.request('GET', body.links.self)).body
    for (const node of nodes)
      assert.equal(node.duration_ms, Date.parse(node.ended_at) - Date.parse(node.started_at), node.node_id)
    assert.ok(nodes[1].attempt === 2 && nodes[1].duration_ms >= 300, `${nodes[1].duration_ms} ms`)
  })

  it('answers 200 for a run that failed', async () => {
    const { status, body } = await run({ name: 'Fails', confirm: true }, { Prefer: 'wait=10' })
    assert.deepEqual([status, body.status], [200, 'failed'])
    assert.deepEqual(body.error, { code: 'stopped', message: 'No.', node_id: 'no' })
  })

  it('refuses unknown and ambiguous names, wrong inputs and another version', async () => {
    assert.equal((await run({ name: 'greet', confirm: true })).status, 404)
    const twice = await run({ name: 'Twice', confirm: true })
    assert.deepEqual(
      [twice.status, twice.body.error.type, twice.body.error.candidates.length],
      [400, 'ambiguous_name', 2],
    )
    const wrong = await run({ name: 'Greet', inputs: { nam: 1 }, confirm: true })
    assert.equal(wrong.status, 422)
    assert.deepEqual(
      wrong.body.detail.map((issue: { loc: string[] }) => issue.loc.at(-1)),
      ['name', 'nam'],
    )
    const stale = await run({ name: 'Greet', inputs: { name: 'Ada' }, confirm: true }, { 'If-Match': '"7"' })
    assert.equal(stale.status, 412)
  })

  it('runs by id, and by id and version', async () => {
    const path = `/v1/workflows/${workflowId}/run`
    const body = { inputs: { name: 'Ada' }, confirm: true, version: 1 }
    const ran = await api.request('POST', path, { body, headers: { Prefer: 'wait=10' } })
    assert.equal(ran.body.status, 'completed')
    assert.equal((await api.request('POST', path, { body: { ...body, version: 9 } })).status, 404)
  })

  it('cancels a waiting run, and returns an ended run unchanged', async () => {
    await save({
      ...greet,
      name: 'Waits',
      inputs: {},
      nodes: [{ id: 'long', type: 'delay', config: { for: '1h' } }],
      outputs: {},
    })
    const { body } = await run({ name: 'Waits', confirm: true })
    const path = `/v1/runs/${body.run_id}`
    const status = async () => {
      const { body } = await api.request('GET', path)
      // Until the run waits.
      return body.status === 'running' ? body.nodes[0]?.status : body.status
    }
    await until(async () => (await status()) === 'waiting')
    assert.equal((await api.request('GET', path)).body.nodes[0].handle, null, 'no handle is selected')
    const asked = await api.request('POST', `${path}/cancel`)
    assert.deepEqual([asked.status, asked.body.object, asked.body.run_id], [200, 'run', body.run_id])
    assert.ok(asked.body.cancel_requested_at)
    await until(async () => (await status()) === 'cancelled')
    assert.equal((await api.request('GET', path)).body.nodes[0]?.status, 'cancelled')
    const again = await api.request('POST', `${path}/cancel`)
    assert.deepEqual([again.status, again.body.status], [200, 'cancelled'])

    const ended = await run({ name: 'Greet', inputs: { name: 'Ada' }, confirm: true }, { Prefer: 'wait=10' })
    const late = await api.request('POST', `/v1/runs/${ended.body.run_id}/cancel`)
    assert.deepEqual([late.status, late.body.status], [200, 'completed'])
    assert.equal(late.body.cancel_requested_at, null)
  })

  it('renders placeholders of omitted inputs as null', async () => {
    await save({
      ...greet,
      name: 'Optional',
      inputs: { note: { type: 'string' } },
      outputs: { text: '{{ nodes.hello.output.text }}' },
      nodes: [
        {
          id: 'hello',
          type: 'set_fields',
          config: { fields: { text: "{{ inputs.note | default: 'none' }}" } },
        },
      ],
    })
    const { body } = await run({ name: 'Optional', confirm: true }, { Prefer: 'wait=10' })
    assert.deepEqual([body.status, body.outputs], ['completed', { text: 'none' }])
  })

  it('does not show runs to another organization', async () => {
    const { body } = await run({ name: 'Greet', inputs: { name: 'Ada' }, confirm: true })
    const other = await startApi(db)
    assert.equal((await other.request('GET', `/v1/runs/${body.run_id}`)).status, 404)
    assert.equal((await other.request('POST', `/v1/runs/${body.run_id}/cancel`)).status, 404)
    await other.close()
  })

  it('tests a node with confirm', async () => {
    const body = { node_type: 'set_fields', config: { fields: { a: '{{ inputs.n }}' } }, inputs: { n: 3 } }
    const preview = await api.request('POST', '/v1/workflows/nodes/test', { body })
    assert.equal(preview.body.status, 'confirmation_required')
    assert.deepEqual([preview.body.preview.warnings, preview.body.preview.calls], [[], []])
    const wrong = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'delay', config: { until: '{{ inputs.n }}' } },
    })
    assert.deepEqual(wrong.body.preview.warnings, [
      'The config is invalid: for is missing.',
      'The config is invalid: delay has no setting until.',
    ])
    assert.ok(!('calls' in wrong.body.preview))
    const { status, body: answer } = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { ...body, confirm: true },
    })
    assert.equal(status, 200)
    assert.deepEqual(
      [answer.object, answer.status, answer.output, answer.handle, answer.rendered_config],
      ['node_test', 'completed', { a: 3 }, 'success', { fields: { a: 3 } }],
    )
    const broken = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { ...body, config: { fields: { a: '{{ inputs.x }}' } }, confirm: true },
    })
    assert.deepEqual(
      [broken.status, broken.body.status, broken.body.error.code],
      [200, 'failed', 'placeholder_error'],
    )
  })

  it('tests run_workflow: it starts a real run and waits for its end, and fails as that run does', async () => {
    const body = { node_type: 'run_workflow', config: { workflow: 'Greet', inputs: { name: 'Ada' } } }
    const preview = await api.request('POST', '/v1/workflows/nodes/test', { body })
    assert.deepEqual(preview.body.preview.calls, ['starting the workflow Greet, inputs name'])
    const { body: test } = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { ...body, confirm: true },
    })
    const { run_id } = test.output
    assert.deepEqual([test.status, test.output.status, test.handle], ['completed', 'completed', 'success'])
    assert.deepEqual(test.output.outputs, { text: 'Hello Ada' })
    const { body: fails } = await api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'run_workflow', config: { workflow: 'Fails' }, confirm: true },
    })
    assert.deepEqual(
      [fails.status, fails.error.code, fails.error.message],
      ['failed', 'child_run_failed', 'The run of Fails is failed: No.'],
    )
    const started = await api.request('GET', `/v1/runs/${run_id}`)
    assert.deepEqual([started.body.workflow_id, started.body.trigger.type], [workflowId, 'run'])
  })

  it('previews the calls of a node without making them', async () => {
    const callsOf = async (node_type: string, config: object, inputs: object = {}) => {
      const body = { node_type, config, inputs }
      const { status, body: answer } = await api.request('POST', '/v1/workflows/nodes/test', { body })
      assert.deepEqual([status, answer.status], [200, 'confirmation_required'])
      assert.doesNotMatch(JSON.stringify(answer.preview.calls ?? []), /hunter2/)
      return answer.preview.calls
    }
    const before = await db.system('contacts').count().first()
    const create = { operation: 'create', entity: 'contacts', fields: { first_name: '{{ inputs.name }}' } }
    const creates = ['creating a record in contacts, fields first_name']
    assert.deepEqual(await callsOf('crm_manager', create, { name: 'hunter2' }), creates)
    assert.equal(await callsOf('crm_manager', create), undefined)
    assert.deepEqual(await db.system('contacts').count().first(), before)

    let calls = 0
    const server = createServer((_, res) => res.end(String(calls++)))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/{{ org.currency }}`
    const call = { method: 'PUT', url, query: { q: 'hunter2' }, body: { a: 'hunter2' } }
    assert.deepEqual(await callsOf('api_request', call), [
      `PUT ${url.replace('{{ org.currency }}', 'USD')}, query q, headers Idempotency-Key, a body of 15 bytes`,
    ])
    server.close()
    assert.equal(calls, 0)
  })

  it('logs the actions of a tested node, without values', async () => {
    const logOf = async (node_type: string, config: object) => {
      const body = { node_type, config, confirm: true }
      const answer = await api.request('POST', '/v1/workflows/nodes/test', { body })
      assert.doesNotMatch(JSON.stringify(answer.body.log), /hunter2/)
      return answer.body.log.map((line: { time: string; message: string }) => {
        assert.ok(Date.now() - Date.parse(line.time) < 60_000)
        return line.message.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID').replace(/\d+ ms/g, 'N ms')
      })
    }
    const create = { operation: 'create', entity: 'contacts', fields: { first_name: 'hunter2' } }
    assert.deepEqual(await logOf('crm_manager', create), [
      'creating a record in contacts, fields first_name',
      'created contact ID (N ms)',
      'left by success',
    ])
    const absent = { operation: 'get', entity: 'contacts', id: '019a0000-0000-7000-8000-000000000001' }
    assert.deepEqual(await logOf('crm_manager', absent), [
      'reading ID of contacts',
      'failed after N ms',
      'failed: not_found: contact not found',
    ])
    const emit = { event: 'invoice.paid', data: { number: 'hunter2' } }
    assert.deepEqual(await logOf('emit_event', emit), [
      'raising the event invoice.paid, fields number',
      'raised the event invoice.paid, ID (N ms)',
      'left by success',
    ])
    const call = { url: 'http://127.0.0.2:9/x?api_key=hunter2', headers: { 'X-Key': 'hunter2' } }
    const [request, gaveUp, failed] = await logOf('api_request', call)
    assert.equal(request, 'GET http://127.0.0.2:9/x, query api_key, headers X-Key')
    assert.equal(gaveUp, 'failed after N ms')
    assert.match(failed, /^failed: egress_refused: /)
  })

  it('requires the scope of the records that a tested node accesses', async () => {
    const { key } = await createKey(db, api.organizationId, { scopes: ['workflows:run'] })
    const body = { node_type: 'crm_manager', config: { operation: 'delete', entity: 'contacts', id: 'x' } }
    const answer = await api.request('POST', '/v1/workflows/nodes/test', { body, key })
    assert.equal(answer.status, 403)
    assert.match(answer.body.error.message, /contacts:write/)
  })

  it("requires the scope that saves workflows for the members' addresses, which no list of users shows", async () => {
    const { key } = await createKey(db, api.organizationId, { scopes: ['workflows:run'] })
    await createMember(db, api.organizationId)
    const users = await api.request('GET', '/v1/users', { key })
    assert.equal(users.body.data.length, 1)
    assert.doesNotMatch(JSON.stringify(users.body), /@|email/)
    const rotation = { operation: 'next', rotation: 'leads' }
    for (const config of [{ operation: 'list' }, { operation: 'find', email: 'a@b.ch' }, rotation])
      for (const confirm of [false, true]) {
        const body = { node_type: 'people', config, confirm }
        const answer = await api.request('POST', '/v1/workflows/nodes/test', { body, key })
        assert.equal(answer.status, 403)
        assert.match(answer.body.error.message, /workflows:author/)
      }
  })

  const linking: [what: string, fields: unknown][] = [
    ['a reference', { first_name: 'Ada', company_id: '{{ inputs.id }}' }],
    ['an association', { first_name: 'Ada', associations: [{ object: 'company', id: 'x' }] }],
    ['an association from a placeholder', { associations: ['{{ inputs.link }}'] }],
    ['associations from a placeholder', { associations: '{{ inputs.links }}' }],
    ['fields from a placeholder', '{{ inputs.fields }}'],
  ]
  for (const [what, fields] of linking)
    it(`requires the scope of the records that a tested node links by ${what}`, async () => {
      const { key } = await createKey(db, api.organizationId, { scopes: ['workflows:run', 'contacts:write'] })
      const body = { node_type: 'crm_manager', config: { operation: 'create', entity: 'contacts', fields } }
      const answer = await api.request('POST', '/v1/workflows/nodes/test', { body, key })
      assert.equal(answer.status, 403)
      assert.match(answer.body.error.message, /companies:write/)
    })
})

/** Knex's client, which emits the statements of a pool. */
const clientOf = (trx: Knex): EventEmitter => (trx('runs') as unknown as { client: EventEmitter }).client
