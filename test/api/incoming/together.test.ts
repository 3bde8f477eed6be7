import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { finderBy } from '../../../db/records/find-by-key.ts'
import { activate, createWorkflow } from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { startApi } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

const hello: Definition = {
  name: 'Hello',
  trigger: { type: 'webhook' },
  inputs: {},
  nodes: [{ id: 'hello', type: 'set_fields', config: { fields: { text: 'hello' } } }],
  edges: [],
  outputs: {},
  settings: {},
}

describe('requests to one incoming webhook at the same time', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const tenant = <T>(work: Parameters<typeof test.db.tenant<T>>[2]) =>
    test.db.tenant(test.api.organizationId, testActor, work)

  it('share transactions; each has its own answer, record, note, run, trace and log entry', async () => {
    const workflow_id = await tenant(async (tx) => {
      const content = { spec: null, definition: hello, program: compile(hello) }
      const { id } = await createWorkflow(tx, { name: hello.name, description: null, ...content })
      await activate(tx, id)
      return id
    })
    const webhook = await test.createWebhook({ rate_limit: 1_000, workflow_id })
    const numbers = Array.from({ length: 60 }, (_, n) => n)
    const traces = numbers.map(() => randomBytes(16).toString('hex'))
    const answers = await Promise.all(
      numbers.map((n) =>
        test.send(
          webhook,
          { email: `one${n}@x.test`, company: 'Together', message: `note ${n}` },
          { traceparent: `00-${traces[n]}-00f067aa0ba902b7-01` },
        ),
      ),
    )
    const found = await test.db
      .system('contacts as c')
      .join('record_history as h', 'h.record_id', 'c.id')
      .join('events as e', 'e.subject_id', 'c.id')
      .join('runs as r', 'r.record_id', 'c.id')
      .join('incoming_logs as l', 'l.record_id', 'c.id')
      .whereLike('email', 'one%@x.test')
      .select('c.id', 'email', 'c.company_id', test.db.system.raw('c.xmin::text as transaction'))
      .select('l.run_id', 'r.id as run', 'l.payload', 'r.trigger')
      .select(test.db.system.raw("replace(e.trace_id::text, '-', '') as event_trace"))
      .select(test.db.system.raw("replace(r.trace_id::text, '-', '') as run_trace"))
    assert.equal(found.length, 60)
    for (const n of numbers) {
      const { status, body } = answers[n]!
      assert.deepEqual([status, body.action], [200, 'created'])
      const row = found.find(({ id }) => id === body.record_id)
      const email = `one${n}@x.test`
      assert.deepEqual(
        [row.email, row.run_id, row.event_trace, row.run_trace],
        [email, row.run, traces[n], traces[n]],
      )
      assert.deepEqual([JSON.parse(row.payload).email, row.trigger.payload.email], [email, email])
      if (n % 10 > 0) continue
      const { data } = (await test.api.request('GET', `/v1/objects/contacts/${row.id}/notes`)).body
      assert.deepEqual(
        data.map((note: { body: string }) => note.body),
        [`note ${n}`],
      )
    }
    assert.equal(new Set(found.map(({ company_id }) => company_id)).size, 1)
    const transactions = new Set(found.map(({ transaction }) => transaction)).size
    assert.ok(transactions < 30, `${transactions} transactions`)
  })

  it('fail alone: the others are written', async () => {
    await test.api.request('POST', '/v1/custom-fields/contacts', {
      body: { name: 'badge', type: 'text', unique: true },
    })
    const taken = { email: 'taken@x.test', custom_fields: { badge: 'B1' } }
    assert.equal((await test.api.request('POST', '/v1/objects/contacts', { body: taken })).status, 201)
    const webhook = await test.createWebhook({
      rate_limit: 1_000,
      field_mapping: {
        mode: 'manual',
        rules: [
          { from: 'email', to: 'email' },
          { from: 'badge', to: 'custom_fields.badge' },
        ],
      },
    })
    const isBad = (n: number) => n % 10 === 5
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        test.send(webhook, { email: `two${n}@x.test`, badge: isBad(n) ? 'B1' : `C${n}` }),
      ),
    )
    assert.deepEqual(
      answers.map(({ status }) => status),
      answers.map((_, n) => (isBad(n) ? 400 : 200)),
    )
    assert.deepEqual(Object.keys(answers[5]!.body.details), ['custom_fields.badge'])
    const emails = await test.db.system('contacts').whereLike('email', 'two%@x.test').pluck('email')
    assert.equal(emails.length, 36)
    const counts = await test.db
      .system('incoming_logs')
      .where({ webhook_id: webhook.id })
      .groupBy('status')
      .orderBy('status')
      .select('status')
      .count('*')
    assert.deepEqual(counts, [
      { status: 'Failed', count: 4 },
      { status: 'Success', count: 36 },
    ])
  })

  it('of one delivery and of others: each delivery has one effect', async () => {
    const webhook = await test.createWebhook({
      rate_limit: 1_000,
      deduplication: { action: 'Create Anyway' },
    })
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        test.send(webhook, { email: `three${n % 6}@x.test` }, { 'X-GitHub-Delivery': `d${n % 6}` }),
      ),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(answers.map(({ body }) => body.record_id)).size, 6)
    const emails = await test.db.system('contacts').whereLike('email', 'three%').pluck('email')
    assert.equal(emails.length, 6)
  })

  it('to a webhook whose settings change follow the settings that they found', async () => {
    const webhook = await test.createWebhook({ rate_limit: 1_000 })
    const early = Array.from({ length: 20 }, (_, n) => test.send(webhook, { email: `four${n}@x.test` }))
    const changed = test.app('PATCH', `/webhooks/incoming/${webhook.id}`, { target_entity: 'Company' })
    const later = changed.then(() =>
      Promise.all(Array.from({ length: 20 }, (_, n) => test.send(webhook, { name: `Four ${n}` }))),
    )
    const answers = [...(await Promise.all(early)), ...(await later)]
    for (const { status, body } of answers) {
      if (status === 400) continue
      const table = body.entity === 'contact' ? 'contacts' : 'companies'
      assert.equal((await test.db.system(table).where({ id: body.record_id })).length, 1)
    }
    assert.deepEqual(new Set((await later).map(({ body }) => body.entity)), new Set(['company']))
  })

  it('do not wait for the lock under which a company of the same name would be created', async () => {
    const webhook = await test.createWebhook()
    await test.send(webhook, { email: 'five@x.test', company: 'Locked' })
    await tenant(async (tx) => {
      await (await finderBy(tx, 'companies', 'name')).find(['locked'])
      const { status } = await test.send(webhook, { email: 'six@x.test', company: 'locked' })
      assert.equal(status, 200)
    })
  })

  it('are counted exactly across processes of the API: in a minute and in a month', async () => {
    const SECRETS_KEY = randomBytes(32).toString('base64')
    const one = await startIncoming({ SECRETS_KEY })
    const other = await startApi(one.db, { SECRETS_KEY })
    try {
      const webhook = await one.createWebhook({ rate_limit: 1_000 })
      await one.db.system('organizations').update({ limits: JSON.stringify({ incoming_per_month: 25 }) })
      const statuses = await Promise.all(
        Array.from({ length: 60 }, async (_, n) => {
          const headers = { 'X-Webhook-Secret': webhook.secret }
          const api = n % 2 ? one.api : other
          const body = { email: `seven${n}@x.test` }
          const path = `/webhooks/incoming/${webhook.id}`
          return (await api.request('POST', path, { key: null, headers, body })).status
        }),
      )
      assert.equal(statuses.filter((status) => status === 200).length, 25)
      assert.equal((await one.db.system('contacts').whereLike('email', 'seven%')).length, 25)
      const windows = await one.db.system('limit_windows').whereLike('subject', 'incoming:%').pluck('used')
      assert.equal(
        windows.reduce((sum, used) => sum + used, 0),
        60,
      )
    } finally {
      await other.close()
      await one.close()
    }
  })
})
