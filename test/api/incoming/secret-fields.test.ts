import assert from 'node:assert/strict'
import { activate, createWorkflow } from '../../../db/workflows/workflows.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import type { Definition } from '../../../workflows/language/definition.ts'
import { testActor } from '../../support/database.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const SSN = '078-05-1120'
// The external_id of a contact is unique.
const [OTHER_SSN, THIRD_SSN] = ['078-05-1121', '078-05-1122']
const rule = (from: string, to: string, transforms: object[] = []) => ({ from, to, transforms })
const manual = (...rules: object[]) => ({ mode: 'manual', rules })

const keep: Definition = {
  name: 'Keep',
  trigger: { type: 'webhook' },
  inputs: {},
  nodes: [{ id: 'noop', type: 'set_fields', config: { fields: { text: 'x' } } }],
  edges: [],
  outputs: {},
  settings: {},
}

describe('secret headers and fields of an incoming webhook', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const path = (webhook: TestWebhook, rest: string) => `/webhooks/incoming/${webhook.id}${rest}`
  const entries = async (webhook: TestWebhook) => {
    const listed = await test.logs(webhook)
    return Promise.all(
      listed.map(async ({ id }) => (await test.app('GET', path(webhook, `/logs/${id}`))).body),
    )
  }
  /** Everything that the database has of a text, but for records, their history and events. */
  const placesWith = (text: string) =>
    test.db.asOwner(async (client) => {
      const found: string[] = []
      for (const table of [
        'incoming_logs',
        'incoming_webhooks',
        'incoming_deliveries',
        'runs',
        'run_nodes',
      ]) {
        const { rowCount } = await client.query(`select from ${table} t where t::text like $1 limit 1`, [
          `%${text}%`,
        ])
        if (rowCount) found.push(table)
      }
      return found
    })

  it('are masked in the log, where the request repeats them, and mapped as they are', async () => {
    const webhook = await test.createWebhook({
      secret_headers: ['X-Tenant-Code'],
      secret_fields: ['user.ssn', 'cards.number', 'pin'],
      field_mapping: manual(
        rule('user.ssn', 'external_id'),
        rule('email', 'email'),
        rule('name', 'first_name'),
        rule('name', 'last_name', [{ type: 'combine', with: ['pin'], separator: '/' }]),
      ),
    })
    assert.deepEqual(
      [webhook, (await test.app('GET', path(webhook, ''))).body].map((one) => one.secret_headers),
      [['x-tenant-code'], ['x-tenant-code']],
    )
    const payload = {
      user: { ssn: SSN, note: `said ${SSN} by phone` },
      cards: [{ number: '4111 1111 1111 1111' }, { number: 4242424242424242 }],
      pin: 42,
      email: 'ann@example.com',
      name: 'Ann',
    }
    const { body } = await test.send(webhook, payload, { 'X-Tenant-Code': 'blue-42', 'X-Other': 'seen' })
    const contact = await test.contact(body.record_id)
    assert.deepEqual([contact.external_id, contact.last_name], [SSN, 'Ann/42'])
    const [entry] = await entries(webhook)
    assert.deepEqual(JSON.parse(entry.payload), {
      user: { ssn: '[masked]', note: 'said [masked] by phone' },
      cards: [{ number: '[masked]' }, { number: '[masked]' }],
      pin: '[masked]',
      email: 'ann@example.com',
      name: 'Ann',
    })
    assert.deepEqual([entry.headers['x-tenant-code'], entry.headers['x-other']], ['[masked]', 'seen'])
    assert.deepEqual(
      [entry.mapped_data.fields.external_id, entry.mapped_data.fields.last_name],
      ['[masked]', '[masked]'],
    )
    assert.equal(entry.mapped_data.fields.first_name, 'Ann')
    assert.deepEqual(await placesWith(SSN), [])
    assert.deepEqual(await placesWith('blue-42'), [])
  })

  it('are masked in forms, XML, batches, and whatever could not be parsed', async () => {
    const webhook = await test.createWebhook({ secret_fields: ['user.ssn'] })
    const post = (body: unknown, type: string, headers: object = {}) =>
      test.send(webhook, body, { 'Content-Type': type, ...headers })
    await post(`email=form%40example.com&user%5Bssn%5D=${SSN}`, 'application/x-www-form-urlencoded')
    await post(
      `<lead><email>xml@example.com</email><user><ssn kind="us">${SSN}</ssn></user></lead>`,
      'application/xml',
    )
    await post(
      [1, 2].map((n) => ({ email: `batch${n}@example.com`, user: { ssn: SSN } })),
      'application/json',
    )
    assert.equal((await post(`{"user": {"ssn": "${SSN}"`, 'application/json')).status, 400)
    assert.equal(
      (await post({ user: { ssn: SSN } }, 'application/json', { 'X-Webhook-Secret': 'wrong' })).status,
      401,
    )
    const all = await entries(webhook)
    assert.equal(all.length, 6)
    for (const { payload } of all) assert.ok(payload.includes('[masked]'), payload)
    assert.deepEqual(await placesWith(SSN), [])
    assert.deepEqual(all.map(({ payload }) => payload === '[masked]').toSorted(), [
      false,
      false,
      false,
      false,
      true,
      true,
    ])
    const plain = 'email=none%40example.com'
    await post(plain, 'application/x-www-form-urlencoded')
    assert.equal((await entries(webhook))[0].payload, plain)
  })

  it('are masked in captured samples, proposals, previews and dry runs', async () => {
    const webhook = await test.createWebhook({ secret_fields: ['user.ssn'] })
    await test.app('POST', path(webhook, '/capture'))
    await test.send(webhook, { email: 'cap@example.com', user: { ssn: OTHER_SSN } })
    const field_mapping = manual(rule('user.ssn', 'external_id'), rule('email', 'last_name'))
    const proposal = await test.app('POST', path(webhook, '/mapping/propose'))
    const preview = await test.app('POST', path(webhook, '/mapping/preview'), { field_mapping })
    const [{ id: log_id }] = await test.logs(webhook)
    const dry = await test.app('POST', path(webhook, '/replays'), { log_id, dry_run: true, field_mapping })
    for (const { body } of [proposal, preview, dry]) assert.ok(!JSON.stringify(body).includes(OTHER_SSN))
    assert.equal(preview.body.outcome, 'created', JSON.stringify(preview.body))
    assert.deepEqual(preview.body.changes.external_id, { from: '[masked]', to: '[masked]' })
  })

  it('are replayed as they were received, also when they are secret no longer', async () => {
    const webhook = await test.createWebhook({
      secret_headers: ['user-agent'],
      secret_fields: ['user.ssn'],
      field_mapping: manual(rule('nothing', 'email')),
    })
    const big = 'x'.repeat(70_000)
    await test.send(webhook, { mail: 'rep@example.com', user: { ssn: THIRD_SSN }, big })
    const [{ id: log_id, replay_problem }] = await test.logs(webhook)
    assert.equal(replay_problem, null)
    const field_mapping = manual(rule('user.ssn', 'external_id'), rule('mail', 'last_name'))
    await test.app('PATCH', path(webhook, ''), { secret_fields: [], field_mapping })
    const { body } = await test.app('POST', path(webhook, '/replays'), { log_id })
    assert.equal(body.result.outcome, 'created', JSON.stringify(body.result))
    assert.equal((await test.contact(body.result.record_id)).external_id, THIRD_SSN)
    assert.ok(!JSON.stringify(body).includes(THIRD_SSN))
    assert.deepEqual(await placesWith(THIRD_SSN), [])
  })

  it('leave no half of a payload to a replay', async () => {
    const webhook = await test.createWebhook({ secret_fields: ['big'], deduplication: { action: 'Update' } })
    await test.send(webhook, { email: 'big@example.com', big: 'x'.repeat(70_000) })
    const [entry] = await entries(webhook)
    assert.deepEqual([entry.payload_truncated, entry.payload.length < 100], [true, true])
    assert.match(entry.replay_problem, /beginning/)
  })

  it('are masked in errors of the log', async () => {
    const webhook = await test.createWebhook({
      secret_fields: ['mail'],
      field_mapping: manual(rule('mail', 'email')),
    })
    await test.send(webhook, { mail: `no mail ${SSN}` })
    assert.equal((await entries(webhook))[0].error, 'validation_failed')
    assert.deepEqual(await placesWith(SSN), [])
  })

  it('are masked in the run of the workflow, which cannot read them as inputs', async () => {
    const id = await test.db.tenant(test.api.organizationId, testActor, async (tx) => {
      const content = { spec: null, definition: keep, program: compile(keep) }
      const { id } = await createWorkflow(tx, { name: keep.name, description: null, ...content })
      await activate(tx, id)
      return id
    })
    const secret_fields = ['user.ssn']
    const webhook = await test.createWebhook({ workflow_id: id, secret_fields })
    await test.send(webhook, { email: 'run@example.com', user: { ssn: SSN, age: 3 } })
    const run = await test.db.system('runs').where({ workflow_id: id }).first()
    assert.deepEqual(run.trigger.payload.user, { ssn: '[masked]', age: 3 })
    const refused = await test.app(
      'PATCH',
      path(webhook, ''),
      { workflow_inputs: { ssn: 'payload.user.ssn' } },
      422,
    )
    assert.match(JSON.stringify(refused.body), /secret_fields/)
    const listener = { workflow_id: id, workflow_inputs: { ssn: 'payload.user.ssn' } }
    const listeners = await test.app('PATCH', path(webhook, ''), { listeners: [listener] }, 422)
    assert.match(JSON.stringify(listeners.body), /secret_fields/)
    const both = { trigger_headers: ['X-Code'], secret_headers: ['x-code'] }
    const headers = await test.app('PATCH', path(webhook, ''), both, 422)
    assert.match(JSON.stringify(headers.body), /x-code is in secret_headers/)
  })

  it('are masked where a Liquid filter of another field reads them', async () => {
    const filters = "append: ' ' | append: payload.user.pin"
    const webhook = await test.createWebhook({
      secret_fields: ['user.pin'],
      field_mapping: manual(
        rule('email', 'email'),
        rule('name', 'first_name', [{ type: 'liquid', filters }]),
      ),
    })
    const { body } = await test.send(webhook, { email: 'l@example.com', name: 'Ann', user: { pin: 1234 } })
    assert.equal((await test.contact(body.record_id)).first_name, 'Ann 1234')
    const [entry] = await entries(webhook)
    assert.equal(entry.mapped_data.fields.first_name, '[masked]')
    assert.ok(!JSON.stringify(entry).includes('1234'))
  })

  it('are validated, and need the scopes of the webhook', async () => {
    const create = (values: object, status: number) =>
      test.app('POST', '/webhooks/incoming', { name: 'Form', ...values }, status)
    const answer = await create({ secret_fields: ['user.*'] }, 422)
    assert.match(JSON.stringify(answer.body), /secret_fields.*must name one value/)
    await create({ secret_fields: ['a['] }, 422)
    await create({ secret_fields: [''] }, 422)
    await create({ secret_headers: ['two words'] }, 422)
    await create({ secret_fields: Array(51).fill('a') }, 422)
    await create({ secret_headers: ['x-never-sent'], secret_fields: ['$.items[0]["a.b"]'] }, 201)
  })
})
