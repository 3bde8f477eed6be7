import assert from 'node:assert/strict'
import { putSecret } from '../../../db/access/secrets.ts'
import { createKey } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'
import { withApi } from '../../support/with-api.ts'
import { startWorker, type TestWorker, untilRun } from '../../support/worker.ts'

const SPEC = `name: Big deal
trigger: {type: event, events: [deal.won], when: "{{ trigger.record.amount > 1000 }}"}
inputs: {channel: {type: string, default: sales}}
nodes:
  find:
    type: crm_manager
    config: {operation: get, entity: contacts, id: "{{ trigger.record.contact_id }}"}
    next: {success: big, error: apologize}
  big:
    type: condition
    config: {conditions: [{left: "{{ trigger.record.amount }}", operator: gt, right: 50000}]}
    next: {"true": call, "false": task}
  call:
    type: api_request
    retry: {max_attempts: 3}
    config:
      method: POST
      url: https://erp.example.com/orders
      headers: {authorization: "Bearer {{ secrets.erp_key }}"}
      body: {customer: "{{ nodes.find.output.email }}", amount: "{{ trigger.record.amount }}"}
    next: done
  task:
    type: crm_manager
    config: {operation: create, entity: tasks, fields: {title: "Thank {{ nodes.find.output.first_name }}"}}
    next: done
  done: {type: set_fields, join: any, config: {fields: {channel: "{{ inputs.channel }}"}}, next: end}
  apologize: {type: stop, config: {status: failed, message: nobody to thank}}
outputs: {channel: "{{ nodes.done.output.channel }}"}
`
const ID = '019a0000-0000-7000-8000-000000000001'
const record = (amount: number) => ({ id: ID, name: 'Acme', amount: String(amount), contact_id: ID })
const SECRET = planted('hunter2-erp-secret-1234')
const ADA = { output: { id: ID, first_name: 'Ada', email: 'ada@example.com' } }

// biome-ignore lint/suspicious/noExplicitAny: bodies of answers
type Any = any

describe('POST /v1/workflows/test', () => {
  const suite = withApi()
  let worker: TestWorker
  let calls = 0
  before(async () => {
    worker = await startWorker(suite.db, {
      secretsKey: suite.api.secretsKey,
      http: async () => {
        calls += 1
        throw new Error('a test makes no calls')
      },
    })
    await suite.db.tenant(suite.api.organizationId, testActor, (tx) =>
      putSecret(tx, suite.api.secretsKey, 'erp_key', SECRET),
    )
  })
  after(() => worker?.stop())

  const send = (body: object) => suite.api.request('POST', '/v1/workflows/test', { body })
  async function test(cases: unknown, source: object = { spec: SPEC }): Promise<Any> {
    const { status, body } = await send({ ...source, cases })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const one = async (given: object, source?: object): Promise<Any> => (await test([given], source)).cases[0]
  it('shows what a run would do, and does none of it', async () => {
    const { passed, status, nodes, effects, outputs } = await one({
      trigger: { record: record(2_000) },
      stubs: { find: ADA },
    })
    assert.deepEqual([passed, status, outputs], [true, 'completed', { channel: 'sales' }])
    assert.deepEqual(
      nodes.map(({ node_id, status, stubbed }: Any) => `${node_id} ${status} ${stubbed}`).sort(),
      [
        'apologize skipped false',
        'big completed false',
        'call skipped false',
        'done completed false',
        'find completed true',
        'task completed false',
      ],
    )
    assert.deepEqual(
      effects.map(({ node_id, effect, input }: Any) => [node_id, effect, input.fields ?? input.id]),
      [
        ['find', 'read', ID],
        ['task', 'write', { title: 'Thank Ada' }],
      ],
    )
    assert.match(effects[1].calls[0], /creating a record in tasks/)
    assert.equal(await suite.db.system('tasks').first('id'), undefined)
  })

  it('shows calls with secrets masked, and makes none', async () => {
    const result = await one({ trigger: { record: record(60_000) }, stubs: { find: ADA } })
    const call = result.effects.find(({ node_id }: Any) => node_id === 'call')
    assert.deepEqual(call.input.body, { customer: 'ada@example.com', amount: '60000' })
    assert.match(call.calls[0], /^POST https:\/\/erp\.example\.com\/orders/)
    assert.ok(!JSON.stringify(result).includes(SECRET))
    assert.equal(calls, 0)
    // Nobody reads the answer of the call.
    assert.deepEqual([result.passed, result.missing_stubs], [true, []])
  })

  it('follows the stub of an error, and of a handle', async () => {
    const failed = await one({
      trigger: { record: record(2_000) },
      stubs: { find: { error: { code: 'not_found', message: 'gone' } } },
      expect: {
        status: 'failed',
        error: { node_id: 'apologize' },
        nodes: { find: { error: { code: 'not_found' } } },
      },
    })
    assert.deepEqual([failed.mismatches, failed.passed], [[], true])
    const { nodes } = await one({
      trigger: { record: record(2_000) },
      stubs: { find: ADA, big: { output: {}, handle: 'true' } },
    })
    assert.equal(nodes.find(({ node_id }: Any) => node_id === 'call').status, 'completed')
  })

  it('names a missing stub where a result decides, and does not pass', async () => {
    const { passed, missing_stubs, status, error } = await one({ trigger: { record: record(2_000) } })
    assert.deepEqual([passed, status], [false, 'failed'])
    assert.deepEqual(missing_stubs, [{ node_id: 'find', read_by: ['task'], handles: [] }])
    assert.match(error.message, /nodes\.find\.output\.first_name/)
  })

  it('does not hide a wrong config behind a stub', async () => {
    const { status, error } = await one({
      trigger: { record: { ...record(2_000), contact_id: 'nobody' } },
      stubs: { find: ADA },
    })
    assert.deepEqual([status, error.code], ['failed', 'stopped'])
  })

  it('starts no run where the condition of the trigger does not hold', async () => {
    const { status, nodes, passed } = await one({
      trigger: { record: record(10) },
      expect: { status: 'not_started' },
    })
    assert.deepEqual([status, nodes, passed], ['not_started', [], true])
  })

  it('reports how the run differs from what is expected', async () => {
    const { passed, mismatches } = await one({
      trigger: { record: record(2_000) },
      stubs: { find: ADA },
      expect: {
        status: 'failed',
        outputs: { channel: 'support' },
        nodes: { task: { input: { fields: { title: 'Thank Bob' } } }, done: { status: 'skipped' } },
        effects: [{ node: 'call' }],
      },
    })
    assert.equal(passed, false)
    assert.deepEqual(
      mismatches.map(({ path, actual }: Any) => [path, actual?.node_id ?? actual]),
      [
        ['status', 'completed'],
        ['outputs.channel', 'sales'],
        ['nodes.task.input.fields.title', 'Thank Ada'],
        ['nodes.done.status', 'completed'],
        ['effects.0', undefined],
        ['effects', 'task'],
      ],
    )
  })

  it('runs loops, waits, cleanup nodes and code as a run does', async () => {
    const spec = `name: Course
inputs: {names: {type: array, required: true}}
settings: {finally: {type: emit_event, config: {event: course.ended, data: {status: "{{ run.status }}"}}}}
nodes:
  each: {type: for_each, config: {items: "{{ inputs.names }}", output: "{{ nodes.send.output.status }}"}, next: {item: shout, done: pause}}
  shout: {type: code, config: {code: "return inputs.name.toUpperCase()", inputs: {name: "{{ item }}"}}}
  send: {type: api_request, config: {method: POST, url: "https://example.com/{{ nodes.shout.output.result }}"}, next: end}
  pause: {type: delay, config: {for: 30d}}
  ask: {type: approval, config: {title: "OK?", assignees: [ada@example.com]}}
  after: {type: set_fields, config: {fields: {all: "{{ nodes.each.output.results }}"}}}
outputs: {all: "{{ nodes.after.output.all }}"}
`
    const stubs = {
      send: { output: { status: 200, headers: {}, body: null } },
      'each:1/send': { output: { status: 404, headers: {}, body: null } },
    }
    const waiting = await one({ inputs: { names: ['ada', 'bob'] }, stubs }, { spec })
    assert.deepEqual([waiting.status, waiting.passed], ['waiting', true])
    assert.deepEqual(
      waiting.effects.map(({ node_id, path, input }: Any) => [path, node_id, input.url]),
      [
        ['each:0', 'send', 'https://example.com/ADA'],
        ['each:1', 'send', 'https://example.com/BOB'],
        ['', 'ask', undefined],
      ],
    )
    const { passed, outputs, effects, mismatches } = await one(
      {
        inputs: { names: ['ada', 'bob'] },
        stubs: { ...stubs, ask: { output: { decision: 'approved' }, handle: 'approved' } },
        expect: {
          status: 'completed',
          nodes: { 'each:1/shout': { output: { result: 'BOB' } } },
          effects: [
            { node: 'finally', input: { data: { status: 'completed' } } },
            { node: 'ask' },
            { node: 'send' },
            { node: 'send' },
          ],
        },
      },
      { spec },
    )
    assert.deepEqual([mismatches, passed, outputs], [[], true, { all: [200, 404] }])
    assert.equal(effects.length, 4)
    assert.equal(await suite.db.system('events').where({ name: 'course.ended' }).first('id'), undefined)
    assert.equal(await suite.db.system('run_waits').where({ type: 'decision' }).first('id'), undefined)
  })

  it('takes cases as YAML, of a saved workflow too', async () => {
    const { body: saved } = await suite.api.request('POST', '/v1/workflows', { body: { spec: SPEC } })
    const cases = `
- name: big
  trigger: {record: {id: ${ID}, name: Acme, amount: "60000", contact_id: ${ID}}}
  stubs:
    find: {output: {first_name: Ada, email: ada@example.com}}
  expect: {effects: [{node: call}]}
- name: small
  trigger: {record: {amount: 1}}
  expect: {status: not_started}
`
    const body = await test(cases, { workflow_id: saved.workflow_id })
    assert.deepEqual([body.passed, body.version, body.workflow_id], [true, 1, saved.workflow_id])
    assert.deepEqual(
      body.cases.map(({ name, status }: Any) => [name, status]),
      [
        ['big', 'completed'],
        ['small', 'not_started'],
      ],
    )
  })

  it('takes the stubs of a run of the workflow, or of its pinned samples', async () => {
    const spec = `name: Counted
inputs: {n: {type: number, default: 1}}
nodes:
  count: {type: key_value, config: {operation: increment, key: "counted", by: "{{ inputs.n }}"}}
  go: {type: wait_for_signal, config: {name: go}}
  text: {type: set_fields, config: {fields: {text: "{{ nodes.count.output.value }} {{ nodes.go.output.payload.by }}"}}}
outputs: {text: "{{ nodes.text.output.text }}"}
`
    const { body: saved } = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
    const source = { workflow_id: saved.workflow_id }
    const path = `/v1/workflows/${saved.workflow_id}`
    const { body: run } = await suite.api.request('POST', `${path}/run`, {
      body: { inputs: { n: 7 }, confirm: true },
    })
    const signal = { name: 'go', payload: { by: 'Ada' } }
    await suite.api.request('POST', `/v1/runs/${run.run_id}/signal`, { body: signal })
    await untilRun(suite.db, run.run_id)
    const ofRun = await one({}, { ...source, stubs_from: run.run_id })
    assert.deepEqual([ofRun.passed, ofRun.outputs], [true, { text: '7 Ada' }])

    assert.deepEqual((await one({}, { ...source, stubs_from: 'last_run' })).outputs, { text: '7 Ada' })
    const { body: fresh } = await suite.api.request('POST', '/v1/workflows', { body: { spec } })
    const never = await send({ workflow_id: fresh.workflow_id, stubs_from: 'last_run', cases: [{}] })
    assert.deepEqual([never.status, never.body.error.type], [404, 'not_found'])

    await suite.api.request('PUT', `${path}/samples/count`, { body: { output: { value: 9 } } })
    const own = { go: { output: { payload: { by: 'Bob' } } } }
    const ofSamples = await one({ stubs: own }, { ...source, stubs_from: 'samples' })
    assert.deepEqual([ofSamples.passed, ofSamples.outputs], [true, { text: '9 Bob' }])
    assert.equal((await one({}, source)).status, 'waiting')
    const kept = await suite.db.system('key_values').where({ key: 'counted' }).first('value')
    assert.equal(Number(kept.value), 7)

    const other = await send({ ...source, stubs_from: ID, cases: [{}] })
    assert.equal(other.status, 404)
    assert.equal((await send({ spec, stubs_from: 'samples', cases: [{}] })).status, 422)
  })

  it('needs workflows:author for a spec that reads secrets, and not for a saved workflow', async () => {
    const { key } = await createKey(suite.db, suite.api.organizationId, { scopes: ['workflows:run'] })
    const { body: saved } = await suite.api.request('POST', '/v1/workflows', { body: { spec: SPEC } })
    const statuses = []
    for (const source of [
      { spec: SPEC },
      { workflow_id: saved.workflow_id },
      { spec: 'name: A\nnodes: {a: {type: stop}}' },
    ]) {
      const body = { ...source, cases: [{ trigger: { record: record(1) } }] }
      statuses.push((await suite.api.request('POST', '/v1/workflows/test', { body, key })).status)
    }
    assert.deepEqual(statuses, [403, 200, 200])
  })

  it('answers a retry with the same Idempotency-Key as before', async () => {
    const request = () =>
      suite.api.request('POST', '/v1/workflows/test', {
        body: { spec: SPEC, cases: [{ trigger: { record: record(2_000) }, stubs: { find: ADA } }] },
        headers: { 'Idempotency-Key': 'test-1' },
      })
    const [first, second] = [await request(), await request()]
    assert.deepEqual([first.body.status, first.body.passed], ['ended', true])
    assert.deepEqual(second.body, first.body)
  })

  const REFUSED: [body: object, status: number, text: RegExp][] = [
    [{ spec: SPEC }, 422, /cases/],
    [{ cases: [{}] }, 422, /one of workflow_id, spec and definition/],
    [{ spec: SPEC, cases: [] }, 422, /cases/],
    [{ spec: SPEC, cases: Array(21).fill({}) }, 422, /cases/],
    [{ spec: SPEC, cases: '- name: [' }, 422, /line 1/],
    [{ spec: SPEC, cases: '- nmae: x' }, 422, /nmae/],
    [{ spec: SPEC, cases: [{ stubs: { fnd: ADA } }] }, 422, /did you mean find/],
    [
      {
        spec: SPEC,
        cases: [{ trigger: { record: record(9_999) }, stubs: { find: { output: 1, handle: 'succes' } } }],
      },
      422,
      /did you mean success/,
    ],
    [{ spec: SPEC, cases: [{ stubs: { find: {} } }] }, 422, /either output or error/],
    [{ spec: SPEC, cases: [{ expect: { nodes: { tsk: {} } } }] }, 422, /did you mean task/],
    [{ spec: SPEC, cases: [{ expect: { effects: [{ node: 'tsk' }] } }] }, 422, /did you mean task/],
    [{ spec: SPEC, cases: [{ inputs: { chanel: 'x' } }] }, 422, /no input chanel/],
    [{ spec: SPEC, cases: [{ trigger: {} }] }, 422, /trigger\.record/],
    [{ spec: 'nodes: {}', cases: [{}] }, 400, /name/],
    [{ workflow_id: ID, cases: [{}] }, 404, /workflow/],
  ]
  for (const [body, status, text] of REFUSED)
    it(`refuses ${JSON.stringify(body).replace(JSON.stringify(SPEC), '…').slice(0, 90)}`, async () => {
      const answer = await send(body)
      assert.equal(answer.status, status, JSON.stringify(answer.body))
      assert.match(JSON.stringify(answer.body), text)
    })

  it('ends a workflow that is too large, and leaves out values that are', async () => {
    const loops = ['a', 'b', 'c']
    const loop = (id: string, n: number) =>
      `  ${id}: {type: for_each, config: {items: "{{ inputs.xs }}"}, next: {item: ${loops[n + 1] ?? 'last'}, done: end}}`
    const spec = `name: Many
inputs: {xs: {type: array, required: true}}
nodes:
${loops.map(loop).join('\n')}
  last: {type: set_fields, config: {fields: {x: 1}}}
`
    const xs = Array(20).fill(1)
    assert.equal((await one({ inputs: { xs } }, { spec })).status, 'too_large')
    const big = `name: Big\ninputs: {x: string}\nnodes: {a: {type: set_fields, config: {fields: {x: "{{ inputs.x }}"}}}}\noutputs: {n: "{{ nodes.a.output.x.size }}"}`
    const given = { inputs: { x: 'y'.repeat(300_000) }, expect: { outputs: { n: 300_000 } } }
    const { cases, passed } = await test([given, given], { spec: big })
    assert.equal(passed, true)
    assert.deepEqual(
      cases.map(({ shortened, nodes }: Any) => [shortened, nodes[0].output?.x.length ?? null]),
      [
        [false, 300_000],
        [true, null],
      ],
    )
  })
})
