import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { mapPayload } from '../../../db/model/incoming/mapping/map.ts'
import type { TargetKind } from '../../../db/model/incoming/types.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const read = (payload: unknown, kind: TargetKind = 'contacts') =>
  mapPayload(payload, { field_mapping: { mode: 'automatic' }, kind })

const secret = 'key-of-mailgun-0123456789abcdef'

const mailgun = (
  event: object = {},
  token = 'a'.repeat(50),
  timestamp = String(Math.floor(Date.now() / 1000)),
) => ({
  signature: {
    timestamp,
    token,
    signature: createHmac('sha256', secret).update(timestamp).update(token).digest('hex'),
  },
  'event-data': {
    id: 'CPgfbmQMTCKtHW6uIWtuVe',
    timestamp: 1_521_472_262.908181,
    event: 'delivered',
    recipient: 'ada@example.com',
    'recipient-domain': 'example.com',
    tags: ['newsletter'],
    envelope: { sender: 'grace@host.example', targets: 'ada@example.com' },
    message: { headers: { to: 'Ada <ada@example.com>', from: 'Grace <grace@host.example>', subject: 'Hi' } },
    'user-variables': {},
    ...event,
  },
})

const meta = (entity: string, more: object = {}) => ({
  action: 'change',
  entity,
  version: '2.0',
  company_id: '12882925',
  user_id: '18487521',
  id: '5f2c6b1e-5a58-4f0d-9b6e-0d1c0c8f3a11',
  entity_id: '1',
  permitted_user_ids: ['18487521'],
  attempt: 1,
  host: 'company.pipedrive.com',
  timestamp: '2024-09-27T14:25:28.000Z',
  ...more,
})
const person = {
  id: 1,
  name: 'Ada Lovelace',
  first_name: 'Ada',
  last_name: 'Lovelace',
  emails: [{ label: 'work', value: 'ada@example.com', primary: true }],
  phones: [{ label: 'work', value: '+442079460000', primary: true }],
  job_title: 'Countess',
  owner_id: 18487521,
}
const ada = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }

describe('the events of Mailgun', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const repeated = async (webhook: TestWebhook, body: object) => {
    const { status, body: answer } = await test.send(webhook, body, { 'X-Webhook-Secret': '' })
    return { status, answer }
  }

  it('are of the recipient, who opts out by a complaint', () => {
    const { fields, sender } = read(mailgun())
    assert.deepEqual([fields, sender], [{ email: 'ada@example.com' }, 'Mailgun'])
    for (const event of ['unsubscribed', 'complained'])
      assert.deepEqual(read(mailgun({ event })).fields, { email: 'ada@example.com', do_not_contact: true })
  })

  it('are verified; a token counts once, whatever the body says, and an event too', async () => {
    const webhook = await test.createWebhook({ sender: 'mailgun', secret })
    const now = String(Math.floor(Date.now() / 1000))
    const token = `e0${'a'.repeat(48)}`
    const first = await repeated(webhook, mailgun({}, token, now))
    assert.equal(first.status, 200, JSON.stringify(first.answer))
    const people = async () => Number((await test.db.system('contacts').count({ n: '*' }).first())!.n)
    const before = await people()
    for (const again of [
      mailgun({ id: 'another', recipient: 'forged@example.com' }, token, now),
      mailgun({}, 'b'.repeat(50)),
    ])
      assert.equal((await repeated(webhook, again)).answer.record_id, first.answer.record_id)
    assert.equal(await people(), before)
    const forged = mailgun({ id: 'x' }, 'c'.repeat(50))
    forged.signature.token = 'd'.repeat(50)
    const stale = mailgun({ id: 'y' }, 'e'.repeat(50), '1521472262')
    const moved = mailgun({ id: 'z' }, token, now)
    Object.assign(moved.signature, { timestamp: `${now}e0`, token: 'a'.repeat(48) })
    for (const body of [
      forged,
      stale,
      moved,
      { 'event-data': {} },
      { signature: { token: {}, timestamp: [] } },
    ])
      assert.equal((await repeated(webhook, body)).status, 401, JSON.stringify(body))
  })

  it('are accepted for as long as Mailgun repeats them, each token once', async () => {
    const webhook = await test.createWebhook({ sender: 'mailgun', secret })
    const at = (hours: number) => String(Math.floor(Date.now() / 1000) - hours * 3_600)
    const late = mailgun({ id: 'late', recipient: 'late@example.com' }, 'l'.repeat(50), at(8.2))
    const first = await repeated(webhook, late)
    assert.equal(first.status, 200, JSON.stringify(first.answer))
    // An hour later nothing has forgotten the token.
    await test.db
      .system('incoming_deliveries')
      .where({ webhook_id: webhook.id })
      .update({ created_at: test.db.system.raw("now() - interval '1 hour'") })
    for (const again of [late, { ...late, 'event-data': { ...late['event-data'], id: 'forged' } }])
      assert.equal((await repeated(webhook, again)).answer.record_id, first.answer.record_id)
    for (const [hours, id] of [
      [10, 'older'],
      [-1, 'of the future'],
    ] as const)
      assert.equal((await repeated(webhook, mailgun({ id }, id.repeat(5), at(hours)))).status, 401, id)
  })

  it('and a change in Pipedrive that is sent again is the same', async () => {
    const webhook = await test.createWebhook({
      sender: 'pipedrive',
      secret,
      deduplication: { action: 'Create Anyway' },
    })
    const sent = async (more: object = {}, password = secret) =>
      (
        await test.send(
          webhook,
          { meta: meta('person', more), data: { ...person, emails: [] }, previous: null },
          { Authorization: `Basic ${Buffer.from(`pipedrive:${password}`).toString('base64')}` },
        )
      ).body
    const first = await sent()
    assert.ok(first.record_id, JSON.stringify(first))
    assert.equal((await sent({ attempt: 2 })).record_id, first.record_id)
    assert.notEqual((await sent({ timestamp: '2024-09-27T14:26:00.000Z' })).record_id, first.record_id)
    assert.equal((await sent({}, 'forged')).success, false)
  })
})

describe('the changes of Pipedrive', () => {
  it('are of the entity that they name, and of no other kind', () => {
    const of = (entity: string, data: object, kind: TargetKind) =>
      read({ meta: meta(entity), data, previous: { name: 'Ada Byron' } }, kind).fields
    const rest = { phone: '+442079460000', job_title: 'Countess' }
    assert.deepEqual(of('person', person, 'contacts'), { ...ada, ...rest })
    assert.equal(
      of('person', { ...person, marketing_status: 'unsubscribed' }, 'contacts').do_not_contact,
      true,
    )
    assert.deepEqual(of('person', person, 'companies'), {})
    assert.deepEqual(of('organization', { name: 'Analytical Engines' }, 'contacts'), {})
    assert.deepEqual(of('organization', { name: 'Analytical Engines' }, 'companies'), {
      name: 'Analytical Engines',
    })
    const deal = { title: 'Engine', value: 1200, currency: 'GBP', expected_close_date: '2026-12-01' }
    assert.deepEqual(of('deal', deal, 'deals'), {
      name: 'Engine',
      amount: '1200',
      currency: 'GBP',
      expected_close_date: '2026-12-01',
    })
    assert.deepEqual(of('deal', deal, 'contacts'), {})
    assert.deepEqual(of('product', { name: 'Mill', email: 'x@example.com' }, 'contacts'), {})
  })

  it('take the primary address, and no record of a deletion', () => {
    const emails = [
      { label: 'home', value: 'old@example.com', primary: false },
      { label: 'work', value: 'ada@example.com', primary: true },
    ]
    const two = read({ meta: meta('person'), data: { ...person, emails }, previous: null })
    assert.equal(two.fields.email, 'ada@example.com')
    const gone = { meta: meta('person', { action: 'delete' }), data: null, previous: person }
    assert.equal(read(gone).skip, 'notification of Pipedrive without the data of a record')
  })

  it('of version 1 are read as well', () => {
    const current = {
      name: 'Ada Lovelace',
      email: [{ value: 'ada@example.com', primary: true }],
      phone: [{ value: '+442079460000', primary: true }],
    }
    const v1 = { v: 1, action: 'updated', object: 'person', id: 1, permitted_user_ids: ['*'] }
    assert.deepEqual(read({ v: 1, meta: v1, current, previous: null, retry: 0 }).fields, {
      ...ada,
      phone: '+442079460000',
    })
  })
})
