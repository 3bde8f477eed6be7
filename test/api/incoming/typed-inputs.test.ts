import assert from 'node:assert/strict'
import { getIncomingWebhook } from '../../../db/incoming/webhooks.ts'
import { workflowProblem } from '../../../db/incoming/workflow-problem.ts'
import { activate, createWorkflow, deactivate } from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { testActor } from '../../support/database.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'
import { planInTenant, statementsOf } from '../../support/plans.ts'

const booking = {
  name: 'Book',
  trigger: { type: 'webhook' },
  inputs: {
    nights: { type: 'number', required: true },
    pets: { type: 'boolean', default: false },
    phone: { type: 'string' },
    guests: { type: 'array' },
    season: { type: 'string', enum: ['summer', 'winter'] },
  },
  nodes: [{ id: 'keep', type: 'set_fields', config: { fields: { nights: '{{ inputs.nights }}' } } }],
  edges: [],
  outputs: {},
  settings: {},
} as const satisfies Definition
const workflow_inputs = {
  nights: 'payload.nights',
  pets: 'payload.pets',
  phone: 'payload.phone',
  guests: 'payload.guest',
  season: 'payload.season',
}
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }
const XML = { 'Content-Type': 'application/xml' }

describe('typed inputs of the workflow of an incoming webhook', () => {
  let test: IncomingTest
  let workflow_id: string
  before(async () => {
    test = await startIncoming()
    workflow_id = await test.db.tenant(test.api.organizationId, testActor, async (tx) => {
      const content = { spec: null, definition: booking, program: compile(booking) }
      const { id } = await createWorkflow(tx, { name: booking.name, description: null, ...content })
      await activate(tx, id)
      return id
    })
  })
  after(() => test?.close())

  const runs = () => test.db.system('runs').where({ workflow_id }).orderBy('id')
  const newest = async () => (await runs()).at(-1)
  const plain = (values: object = {}) =>
    test.createWebhook({ target_entity: 'none', workflow_id, workflow_inputs, ...values })
  const problem = async ({ id }: TestWebhook): Promise<string | null> =>
    (await test.app('GET', `/webhooks/incoming/${id}`)).body.problem

  it('are read from the texts of a form, of XML and of JSON', async () => {
    const webhook = await plain()
    const rest = { phone: null, guests: null, season: null }
    for (const [body, headers, inputs] of [
      [
        'nights=3&pets=on&phone=&season=',
        FORM,
        { nights: 3, pets: true, phone: '', guests: null, season: null },
      ],
      ['nights=2,5&pets=&guest=Ada', FORM, { ...rest, nights: 2.5, pets: false, guests: ['Ada'] }],
      [
        { nights: ' 4 ', pets: 'no', phone: 436601 },
        {},
        { ...rest, nights: 4, pets: false, phone: '436601' },
      ],
      [
        '<b><nights>5</nights><guest><name>Ada</name></guest><season>winter</season></b>',
        XML,
        { nights: 5, pets: false, phone: null, guests: [{ name: 'Ada' }], season: 'winter' },
      ],
      [
        '<b><nights>6</nights><guest>Ada</guest><guest>Bob</guest></b>',
        XML,
        { ...rest, nights: 6, pets: false, guests: ['Ada', 'Bob'] },
      ],
    ] as const) {
      const answer = await test.send(webhook, body, headers)
      assert.deepEqual(
        [answer.status, answer.body.message],
        [200, 'started a workflow'],
        JSON.stringify(body),
      )
      assert.deepEqual((await newest()).inputs, inputs)
    }
    assert.equal(await problem(webhook), null)
  })

  it('refuse a request that would do nothing else, which can be replayed', async () => {
    const webhook = await plain()
    const before = (await runs()).length
    for (const [body, details] of [
      ['nights=three', { nights: 'Input nights must be of type number.' }],
      ['nights=1,250', { nights: 'Input nights must be of type number.' }],
      ['nights=', { nights: 'Input nights is required.' }],
      [
        'nights=1&season=sumer',
        { season: 'Input season must be one of summer, winter: did you mean summer?' },
      ],
    ] as const) {
      const answer = await test.send(webhook, body, FORM)
      assert.deepEqual(
        [answer.status, answer.body.success, answer.body.error, answer.body.details],
        [400, false, 'validation_failed', details],
      )
      const [entry] = await test.logs(webhook)
      assert.deepEqual(
        [entry.status, entry.error, entry.run_id, entry.replay_problem],
        ['Failed', 'validation_failed', null, null],
      )
      assert.match((await problem(webhook))!, /^the last request was refused: /)
    }
    assert.equal((await runs()).length, before)
    await test.send(webhook, 'nights=1', FORM)
    assert.equal(await problem(webhook), null)
  })

  it('keep nothing else of a request from being done, and are a warning then', async () => {
    const form = await test.createWebhook({ workflow_id, workflow_inputs })
    const { status, body } = await test.send(form, 'email=typed@example.com&nights=three', FORM)
    const warning = 'the workflow "Book" was not started: nights: Input nights must be of type number.'
    assert.deepEqual([status, body.action, body.warnings], [200, 'created', [warning]])
    const [entry] = await test.logs(form)
    assert.deepEqual([entry.status, entry.run_id, entry.warnings], ['Success', null, [warning]])
    assert.equal(await problem(form), `the last request: ${warning}`)
    await test.send(form, 'email=typed@example.com&nights=3', FORM)
    assert.deepEqual([(await newest()).inputs.nights, await problem(form)], [3, null])
    // One of two workflows starts.
    const both = await plain({ listeners: [{ workflow_id, workflow_inputs: { nights: 'payload.days' } }] })
    const answer = await test.send(both, { nights: 'x', days: '2' })
    assert.deepEqual([answer.status, answer.body.message], [200, 'started a workflow'])
    assert.match(answer.body.warnings[0], /nights/)
  })

  it('are a warning for a known sender, chosen or recognised, which may end a webhook that refuses', async () => {
    const subscriber = { email_address: 'ada@example.com', state: 'active' }
    const before = (await runs()).length
    for (const [webhook, payload] of [
      [await plain({ sender: 'kit', verification: { type: 'secret' } }), { nights: 'three' }],
      [await plain(), { subscriber, nights: 'three' }],
    ] as const) {
      const { status, body } = await test.send(webhook, payload)
      const warning = 'the workflow "Book" was not started: nights: Input nights must be of type number.'
      assert.deepEqual([status, body.message, body.warnings], [200, 'started no workflows', [warning]])
      const [entry] = await test.logs(webhook)
      assert.deepEqual([entry.status, entry.run_id, entry.warnings], ['Success', null, [warning]])
      assert.equal(await problem(webhook), `the last request: ${warning}`)
    }
    assert.equal((await runs()).length, before)
  })

  it('are looked for in a bounded part of the log, however long it is', async () => {
    const { id } = await plain()
    const { organizationId } = test.api
    await test.db.asOwner((client) =>
      client.query(
        `insert into incoming_logs
           (organization_id, webhook_id, id, created_at, source_ip, status, http_status, payload_size, response_time_ms, headers)
         select $1::uuid, $2::uuid, ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now() - interval '1 day',
           '192.0.2.1', 'Failed', 401, 1, 1, '{}'
         from generate_series(1, 20000) n`,
        [organizationId, id],
      ),
    )
    await test.db.asOwner((client) => client.query('analyze incoming_logs'))
    const statements = await statementsOf(test.db, (db) =>
      db.tenant(organizationId, testActor, async (tx) =>
        workflowProblem(tx, await getIncomingWebhook(tx, id)),
      ),
    )
    const [search, ...more] = statements.filter(({ sql }) => sql.includes('incoming_logs'))
    assert.equal(more.length, 0)
    const { rows } = await test.db.asOwner((client) => planInTenant(client, organizationId, search!))
    assert.ok(rows <= 1_000, `${rows} rows`)
  })

  it('of a workflow that cannot start whatever is sent are a problem of the webhook at once', async () => {
    const webhook = await plain()
    const move = (work: typeof deactivate) =>
      test.db.tenant(test.api.organizationId, testActor, (tx) => work(tx, workflow_id))
    await move(deactivate)
    assert.equal(await problem(webhook), 'the selected workflow "Book" is not active: no request starts it')
    const { status, body } = await test.send(webhook, { nights: 1 })
    assert.deepEqual([status, body.warnings], [200, ['the selected workflow "Book" is not active']])
    await move(activate)
    assert.equal(await problem(webhook), null)
  })
})
