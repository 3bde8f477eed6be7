import assert from 'node:assert/strict'
import { activate, createWorkflow } from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { testActor } from '../../support/database.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const definition = (name: string): Definition => ({
  name,
  trigger: { type: 'webhook' },
  inputs: {},
  nodes: [{ id: 'keep', type: 'set_fields', config: { fields: { text: '{{ trigger.payload.text }}' } } }],
  edges: [],
  outputs: {},
  settings: {},
})

describe('an incoming webhook without records', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const saved = (name: string) =>
    test.db.tenant(test.api.organizationId, testActor, async (tx) => {
      const content = { spec: null, definition: definition(name), program: compile(definition(name)) }
      const { id } = await createWorkflow(tx, { name, description: null, ...content })
      await activate(tx, id)
      return id
    })
  const runsOf = (workflow_id: string) => test.db.system('runs').where({ workflow_id }).orderBy('id')
  const records = async () => (await test.db.system('contacts').count())[0]!.count
  const plain = (values: object = {}) => test.createWebhook({ target_entity: 'none', ...values })
  const replay = (webhook: TestWebhook, body: object, status?: number) =>
    test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, body, status)

  it('starts the selected workflow with the payload, and writes no record', async () => {
    const workflow_id = await saved('Plain')
    const webhook = await plain({
      workflow_id,
      trigger_headers: ['X-Tenant', 'x-absent'],
      trigger_query: ['source'],
    })
    const before = await records()
    const { status, body } = await test.api.request(
      'POST',
      `/webhooks/incoming/${webhook.id}?source=shop&other=1`,
      {
        key: null,
        body: { text: 'hi', email: 'ada@example.com' },
        headers: { 'X-Webhook-Secret': webhook.secret, 'X-Tenant': `acme ${webhook.secret}`, 'X-Other': '1' },
      },
    )
    assert.deepEqual(
      [status, body],
      [
        200,
        { success: true, message: 'started a workflow', record_id: null, entity: null, action: 'triggered' },
      ],
    )
    const [run, ...more] = await runsOf(workflow_id)
    assert.equal(more.length, 0)
    assert.deepEqual(run.trigger, {
      type: 'webhook',
      payload: { text: 'hi', email: 'ada@example.com' },
      headers: { 'x-tenant': 'acme [masked]' },
      query: { source: 'shop' },
      webhook: { id: webhook.id, name: 'Form' },
      action: 'triggered',
    })
    assert.equal(await records(), before)
    const [entry] = await test.logs(webhook)
    assert.deepEqual(
      [entry.status, entry.action, entry.record_id, entry.run_id, entry.replay_problem],
      ['Success', 'Triggered', null, run.id, null],
    )
  })

  it('starts nothing for a forged request, and once for a repeated delivery', async () => {
    const workflow_id = await saved('Once')
    const webhook = await plain({ workflow_id })
    assert.equal((await test.send(webhook, { text: 'x' }, { 'X-Webhook-Secret': 'wrong' })).status, 401)
    for (const message of ['started a workflow', 'already received']) {
      const { status, body } = await test.send(webhook, { text: 'x' }, { 'webhook-id': 'msg_1' })
      assert.deepEqual([status, body.message, body.action], [200, message, 'triggered'])
    }
    assert.equal((await runsOf(workflow_id)).length, 1)
  })

  it('starts one run for a batch', async () => {
    const workflow_id = await saved('Batch')
    const webhook = await plain({ workflow_id })
    await test.send(webhook, [{ text: 'a' }, { text: 'b' }])
    const [run, ...more] = await runsOf(workflow_id)
    assert.deepEqual([more.length, run.trigger.payload], [0, { items: [{ text: 'a' }, { text: 'b' }] }])
  })

  it('starts each listener whose condition holds', async () => {
    const [all, paid, other] = [await saved('All'), await saved('Paid'), await saved('Other')]
    const when = (to: string) => ({ path: 'event', is: 'equal', to })
    const webhook = await plain({
      workflow_id: all,
      listeners: [
        { workflow_id: paid, when: when('paid') },
        { workflow_id: other, when: when('refunded') },
      ],
    })
    const { body } = await test.send(webhook, { event: 'paid', text: 'x' })
    assert.equal(body.message, 'started 2 workflows')
    const counts = [all, paid, other].map(async (id) => (await runsOf(id)).length)
    assert.deepEqual(await Promise.all(counts), [1, 1, 0])
    const [{ id }] = await test.logs(webhook)
    const entry = (await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${id}`)).body
    assert.equal(entry.mapped_data.run_ids.length, 2)
    // With records, too.
    const form = await test.createWebhook({ listeners: [{ workflow_id: other, when: when('refunded') }] })
    await test.send(form, { email: 'l@example.com', event: 'refunded' })
    assert.equal((await runsOf(other))[0].trigger.record.email, 'l@example.com')
  })

  it('and of a webhook with records those that chose an event without one, by its payload', async () => {
    const [chosen, deleted, any] = [await saved('Chosen'), await saved('Deleted'), await saved('Any')]
    const webhook = await test.createWebhook({
      workflow_id: chosen,
      listeners: [
        { workflow_id: deleted, when: { path: 'type', is: 'equal', to: 'customer.deleted' } },
        { workflow_id: any },
      ],
    })
    const event = (type: string, email: string) => ({
      object: 'event',
      id: `evt_${email}`,
      type,
      data: { object: { object: 'customer', email } },
    })
    const before = await records()
    const payload = event('customer.deleted', 'gone@example.com')
    const { status, body } = await test.send(webhook, payload)
    const reason = 'the payload tells of the deletion of a contact: no record was written'
    assert.deepEqual(
      [status, body.message, body.record_id, body.action, body.warnings],
      [200, 'started a workflow', null, 'triggered', [reason]],
    )
    const [run] = await runsOf(deleted)
    assert.deepEqual([run.trigger.payload, run.trigger.record, run.record_id], [payload, undefined, null])
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.action, entry.run_id, entry.warnings], ['Triggered', run.id, [reason]])
    assert.equal((await replay(webhook, { log_id: entry.id })).body.result.outcome, 'triggered')
    await test.send(webhook, [
      event('customer.deleted', '1@example.com'),
      event('customer.deleted', '2@example.com'),
    ])
    const started = async () =>
      Promise.all([chosen, deleted, any].map(async (id) => (await runsOf(id)).length))
    assert.deepEqual([await started(), await records()], [[0, 4, 0], before])
    // A ping starts nothing, whatever its payload.
    await test.send(webhook, { zen: 'x', hook_id: 1, type: 'customer.deleted' }, { 'X-GitHub-Event': 'ping' })
    const other = await test.send(webhook, { event: 'contact.deleted', email: 'x@example.com' })
    assert.deepEqual(
      [other.body.action, other.body.message],
      [
        'skipped',
        'the payload tells of the deletion of a contact: nothing was written, and no workflow was started',
      ],
    )
    assert.deepEqual(await started(), [0, 4, 0])
  })

  it('is replayed with its headers: a request that was kept as a sample once, another as often as asked', async () => {
    const workflow_id = await saved('Replayed')
    const webhook = await plain({ workflow_id, trigger_headers: ['x-tenant'] })
    await test.app('POST', `/webhooks/incoming/${webhook.id}/capture`)
    await test.send(webhook, { text: 'sample' }, { 'X-Tenant': 'acme' })
    assert.equal((await runsOf(workflow_id)).length, 0)
    const [sample] = await test.logs(webhook)
    const outcomes = async (log_id: string) => (await replay(webhook, { log_id })).body.result
    const first = await outcomes(sample.id)
    assert.deepEqual([first.outcome, first.message], ['triggered', 'started a workflow'])
    const [run] = await runsOf(workflow_id)
    assert.deepEqual([run.id, run.trigger.headers], [first.run_id, { 'x-tenant': 'acme' }])
    assert.equal((await outcomes(sample.id)).outcome, 'skipped')
    const { body } = await replay(webhook, { log_id: (await test.logs(webhook))[1].id, dry_run: true })
    assert.ok(body)
    await test.send(webhook, { text: 'again' })
    const [again] = await test.logs(webhook)
    assert.equal((await outcomes(again.id)).outcome, 'triggered')
    assert.equal((await runsOf(workflow_id)).length, 3)
  })

  it('answers a ping, refuses settings of records, and says that it selects no workflow', async () => {
    const github = await plain({ workflow_id: await saved('Ping') })
    const ping = { zen: 'Keep it', hook_id: 1, hook: { type: 'Repository' } }
    const { body } = await test.send(github, ping, { 'X-GitHub-Event': 'ping' })
    assert.equal(body.action, 'skipped')
    const rules = [{ from: 'a', to: 'email' }]
    for (const [setting, value] of [
      ['field_mapping', { mode: 'manual', rules }],
      ['deduplication', { action: 'Skip' }],
      ['trigger_headers', ['authorization']],
      ['trigger_query', ['token']],
      ['workflow_inputs', { id: 'record.id' }],
      ['workflow_inputs', { id: 'headers.x-tenant' }],
      ['listeners', [{ workflow_id: '01890a5d-ac96-774b-bcce-b302099a8057' }]],
    ] as const) {
      const answer = await test.app(
        'POST',
        '/webhooks/incoming',
        { name: 'x', target_entity: 'none', [setting]: value },
        422,
      )
      assert.equal(answer.body.detail[0].loc[1], setting)
    }
    const alone = await plain()
    assert.deepEqual((await test.send(alone, { a: 1 })).body.warnings, [
      'the webhook selects no workflow: nothing was started',
    ])
  })

  it('previews and tests a payload without writing', async () => {
    const workflow_id = await saved('Tried')
    const { id } = await plain({ workflow_id })
    const tried = (await test.app('POST', `/webhooks/incoming/${id}/test`, { payload: { a: 1 } })).body
    assert.deepEqual([tried.valid, tried.entity], [true, null])
    const shown = (await test.app('POST', `/webhooks/incoming/${id}/mapping/preview`, { payload: { a: 1 } }))
      .body
    assert.deepEqual([shown.outcome, shown.starts_workflow, shown.changes], ['triggered', true, {}])
    await test.app('POST', `/webhooks/incoming/${id}/mapping/propose`, { payload: { a: 1 } }, 422)
    assert.equal((await runsOf(workflow_id)).length, 0)
  })
})
