import assert from 'node:assert/strict'
import { itemsOf, MAX_ITEMS } from '../../../db/model/incoming/batch.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'
import { inOneMinute } from '../../support/limits.ts'

describe('batches of incoming webhooks', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const counted = (name: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({
      email: `${name}${n}@example.com`,
      first_name: `${name} ${n}`,
    }))
  const contacts = async (name: string) => {
    const found = await test.api.request('GET', `/v1/objects/contacts?email[contains]=${name}&limit=200`)
    assert.equal(found.status, 200, JSON.stringify(found.body))
    return found.body.data as { email: string; first_name: string }[]
  }

  it('every record of a list is written, logged and answered alone, in order', async () => {
    const webhook = await test.createWebhook()
    const sent = [...counted('list', 3), { email: 'list0@example.com', first_name: 'Last' }]
    const { status, body } = await test.send(webhook, sent)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      body.results.map(({ index, success, action }: Record<string, unknown>) => [index, success, action]),
      [
        [0, true, 'created'],
        [1, true, 'created'],
        [2, true, 'created'],
        [3, true, 'updated'],
      ],
    )
    const [first] = body.results
    assert.deepEqual(
      [body.success, body.record_id, body.entity, body.action, body.message],
      [true, first.record_id, 'contact', 'created', '4 of 4 records were accepted'],
    )
    assert.equal((await test.contact(first.record_id)).first_name, 'Last')
    const logs = await test.logs(webhook)
    assert.equal(logs.length, 4)
    const detail = await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${logs[0].id}`)
    assert.deepEqual(Object.keys(JSON.parse(detail.body.payload)), ['email', 'first_name'])
  })

  it('many refused records are logged by few statements', async () => {
    const webhook = await test.createWebhook()
    const sent = [...counted('few', 1), ...Array.from({ length: 120 }, (_, n) => ({ shoe_size: n }))]
    const statements: string[] = []
    const onQuery = ({ sql }: { sql: string }) => {
      if (/insert into "?incoming_logs/.test(sql)) statements.push(sql)
    }
    test.db.system.on('query', onQuery)
    const { status, body } = await test.send(webhook, sent)
    test.db.system.off('query', onQuery)
    assert.equal(status, 200, JSON.stringify(body).slice(0, 300))
    const logged = test.db.system('incoming_logs').where({ webhook_id: webhook.id, status: 'Failed' })
    assert.equal(Number((await logged.count())[0]!.count), 120)
    assert.ok(statements.length <= 2, `${statements.length} statements`)
  })

  it('count in the minute by their records, a hundred as one request', () =>
    inOneMinute(async () => {
      const webhook = await test.createWebhook({ rate_limit: 4 })
      const batch = Array.from({ length: 401 }, (_, n) => ({ shoe_size: n }))
      const first = await test.send(webhook, [...counted('rate', 1), ...batch])
      assert.equal(first.status, 200, JSON.stringify(first.body).slice(0, 300))
      assert.equal((await test.send(webhook, counted('rate', 1))).status, 429)
    }))

  it('a record that is refused does not keep the others from being written, and is replayed alone', async () => {
    const webhook = await test.createWebhook()
    const [good, other] = counted('mixed', 2)
    const { status, body } = await test.send(webhook, [good, { shoe_size: 9 }, other])
    assert.equal(status, 200)
    assert.deepEqual(
      body.results.map((one: Record<string, unknown>) => [one.success, one.error]),
      [
        [true, undefined],
        [false, 'validation_failed'],
        [true, undefined],
      ],
    )
    const failed = (await test.logs(webhook)).find((entry) => entry.status === 'Failed')
    assert.equal(failed.replay_problem, null)
    const draft = { mode: 'automatic' }
    const shown = await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, {
      log_id: failed.id,
      field_mapping: draft,
    })
    assert.ok(JSON.stringify(shown.body).includes('has nothing of a contact'), JSON.stringify(shown.body))
    const all = await test.send(webhook, [{ shoe_size: 9 }, { shoe_size: 10 }])
    assert.deepEqual([all.status, all.body.success, all.body.results.length], [400, false, 2])
  })

  it('a repeated batch changes nothing, by the ids of its items and by that of its delivery', async () => {
    const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway', by: 'email' } })
    const events = ['a', 'b'].map((id) => ({
      email: `events-${id}@example.com`,
      event: 'delivered',
      sg_event_id: `ev-${id}`,
    }))
    await test.send(webhook, events)
    const again = await test.send(webhook, [...events, { ...events[0], sg_event_id: 'ev-c' }])
    assert.deepEqual(
      again.body.results.map(({ message }: { message: string }) => message),
      ['already received', 'already received', 'contact created'],
    )
    assert.equal((await contacts('events-')).length, 3)
    const headers = { 'webhook-id': 'msg_1' }
    for (let n = 0; n < 2; n++) await test.send(webhook, counted('delivery', 3), headers)
    assert.equal((await contacts('delivery')).length, 3)
  })

  it('a batch without any id is written once, also if its sender repeats it after a part was written', async () => {
    const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway', by: 'email' } })
    const batch = counted('again', 3)
    await test.send(webhook, batch)
    await test.send(webhook, batch)
    assert.equal((await contacts('again')).length, 3)
  })

  it('is not replayed as its first record, where it was refused before its records were told apart', async () => {
    const webhook = await test.createWebhook({ rate_limit: 1 })
    await test.send(webhook, { email: 'first@example.com' })
    assert.equal((await test.send(webhook, counted('whole', 3))).status, 429)
    const blocked = (await test.logs(webhook)).find((entry) => entry.status === 'Blocked')
    const replay = (
      await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, { log_id: blocked.id })
    ).body
    assert.match(JSON.stringify(replay), /batch of 3 records, which cannot be replayed/)
    assert.deepEqual(await contacts('whole'), [])
  })

  it('opt-outs of SendGrid and users of Segment are taken, each from its envelope', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, [
      { email: 'out@example.com', event: 'open', sg_event_id: '1' },
      { email: 'out@example.com', event: 'unsubscribe', sg_event_id: '2' },
    ])
    assert.equal((await test.contact(body.record_id)).do_not_contact, true)
    const segment = await test.send(webhook, {
      sentAt: '2026-03-02T09:14:07Z',
      batch: ['seg0', 'seg1'].map((id) => ({
        type: 'identify',
        messageId: `m-${id}`,
        userId: id,
        traits: { email: `${id}@example.com`, firstName: 'Ada', title: 'Countess' },
      })),
    })
    assert.equal(segment.body.results.length, 2, JSON.stringify(segment.body))
    const { first_name, job_title, external_id } = await test.contact(segment.body.results[1].record_id)
    assert.deepEqual([first_name, job_title, external_id], ['Ada', 'Countess', 'seg1'])
  })

  it('the largest batch is taken whole, and a larger one not at all', async () => {
    const webhook = await test.createWebhook()
    const most = await test.send(webhook, counted('most', MAX_ITEMS))
    assert.deepEqual([most.status, most.body.results.length], [200, MAX_ITEMS])
    const { rows } = await test.db.system.raw("select count(*)::int from contacts where email like 'most%'")
    assert.equal(rows[0].count, MAX_ITEMS)
    const more = await test.send(webhook, counted('more', MAX_ITEMS + 1))
    assert.deepEqual([more.status, more.body.error], [400, 'invalid_payload'], JSON.stringify(more.body))
    assert.match(more.body.message, /1001 records: at most 1000/)
    assert.deepEqual(await contacts('more'), [])
  })

  it('counts each record in the month', async () => {
    const webhook = await test.createWebhook()
    const used = async () => (await test.app('GET', '/usage')).body.limits.incoming_per_month.used
    const before = await used()
    await test.send(webhook, counted('month', 5))
    assert.equal((await used()) - before, 5)
  })
})

describe('what a batch is', () => {
  const settings = { field_mapping: { mode: 'automatic' as const }, kind: 'contacts' as const }
  const person = (n: number) => ({ email: `p${n}@example.com` })

  it('a list, or an envelope around one', () => {
    assert.deepEqual(itemsOf({ items: [person(1)] }, settings), [person(1)])
    assert.deepEqual(itemsOf({ event: 'x', data: [person(1), person(2)] }, settings), [
      { event: 'x', data: person(1) },
      { event: 'x', data: person(2) },
    ])
  })

  it('keeps what is beside the list, also an item', () => {
    const payload = { item: 'x', items: [person(1), person(2)] }
    assert.deepEqual(itemsOf(payload, settings), [
      { item: 'x', items: person(1) },
      { item: 'x', items: person(2) },
    ])
    assert.deepEqual(itemsOf({ event: 'x', items: payload.items }, settings)?.[1], {
      event: 'x',
      item: person(2),
    })
  })

  it('not copied for each record of a known sender where it is too large', () => {
    let copies = 0
    const around = {
      get size() {
        copies++
        return 'x'.repeat(5_000)
      },
    }
    const message = (count: number) => ({
      Body: {
        notifications: {
          OrganizationId: '00D',
          around,
          Notification: Array.from({ length: count }, (_, n) => ({ Id: `04l${n}`, sObject: person(n) })),
        },
      },
    })
    assert.throws(() => itemsOf(message(MAX_ITEMS + 1), settings), /1001 records: at most 1000/)
    assert.throws(() => itemsOf(message(MAX_ITEMS), settings), /characters around its records: at most 4096/)
    assert.ok(copies <= 2, `${copies} copies`)
  })

  it('no list of answers, of attendees, or within a record', () => {
    for (const payload of [
      {
        items: [
          { name: 'Full name', value: 'Ada' },
          { name: 'Email', value: 'a@example.com' },
        ],
      },
      { attendees: [person(1), person(2)] },
      { order_number: '1001', customer: person(1), items: [{ sku: 'A' }, { sku: 'B' }] },
      { email: 'buyer@example.com', items: [{ name: 'A' }, { name: 'B' }] },
      { data: [person(1), person(2)], note: 'x'.repeat(5_000) },
      { items: ['a', 'b'] },
      { data: person(1) },
    ])
      assert.equal(itemsOf(payload, settings), undefined, JSON.stringify(payload).slice(0, 80))
  })

  it('no list beside which rules read, or around which a deal is described', () => {
    const order = { order_number: '1001', amount: '59', data: [{ sku: 'A' }, { sku: 'B' }] }
    assert.equal(itemsOf(order, { field_mapping: { mode: 'automatic' }, kind: 'deals' }), undefined)
    const rules = [{ from: 'order_number', to: 'name', transforms: [] }]
    assert.equal(itemsOf(order, { field_mapping: { mode: 'manual', rules }, kind: 'deals' }), undefined)
  })

  it('no list of which a rule names an item', () => {
    const rule = (from: string) => ({
      kind: 'contacts' as const,
      field_mapping: { mode: 'manual' as const, rules: [{ from, to: 'email', transforms: [] }] },
    })
    const payload = { items: [person(1), person(2)] }
    for (const from of ['items[0].email', '$.items[1].email', 'items["0"].email'])
      assert.equal(itemsOf(payload, rule(from)), undefined, from)
    assert.equal(itemsOf(payload, rule('email'))?.length, 2)
  })
})
