import assert from 'node:assert/strict'
import { deleteRecord } from '../../../db/records/delete.ts'
import { testActor } from '../../support/database.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

describe('deduplication of incoming webhooks', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const make = async (values: object) => {
    const { status, body } = await test.api.request('POST', '/v1/objects/contacts', { body: values })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  const webhookThat = (action: string, by = 'email') => test.createWebhook({ deduplication: { action, by } })

  it('creates a record if the match is deleted concurrently', async () => {
    const webhook = await test.createWebhook({ rate_limit: 1_000 })
    const { organization_id } = await test.db
      .system('incoming_webhooks')
      .where({ id: webhook.id })
      .first('organization_id')
    for (let round = 0; round < 20; round++) {
      const payload = { email: `gone${round}@example.com` }
      const { body } = await test.send(webhook, payload)
      const later = new Promise((resolve) => setTimeout(resolve, round % 8))
      const [again] = await Promise.all([
        test.send(webhook, { ...payload, first_name: 'Ada' }),
        later.then(() =>
          test.db.tenant(organization_id, testActor, (tx) => deleteRecord(tx, 'contacts', body.record_id)),
        ),
      ])
      assert.equal(again.status, 200, JSON.stringify(again.body))
    }
  })

  it('Skip leaves the record unchanged and returns its id', async () => {
    const contact = await make({ email: 'skip@example.com', first_name: 'Ada' })
    const webhook = await webhookThat('Skip')
    const { status, body } = await test.send(webhook, { email: 'SKIP@example.com', first_name: 'Eve' })
    assert.equal(status, 200)
    assert.deepEqual([body.success, body.action, body.record_id], [true, 'skipped', contact.id])
    assert.deepEqual(await test.contact(contact.id), contact)
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.status, entry.action, entry.record_id], ['Success', 'Skipped', contact.id])
  })

  it('Create Anyway creates a second record', async () => {
    const contact = await make({ email: 'twice@example.com' })
    const { body } = await test.send(await webhookThat('Create Anyway'), { email: 'twice@example.com' })
    assert.equal(body.action, 'created')
    assert.notEqual(body.record_id, contact.id)
  })

  it('Update changes only the fields of the payload, and applies no defaults', async () => {
    const contact = await make({
      email: 'update@example.com',
      first_name: 'Ada',
      do_not_contact: true,
      lifecycle_stage: 'customer',
      tags: ['vip'],
      custom_fields: { tier: 'gold' },
      address: { line1: 'Main Street 1', city: 'Zurich', country: 'CH' },
    })
    const payload = { email: 'update@example.com', lastName: 'Lovelace', tags: ['form'], city: 'Bern' }
    const { body } = await test.send(await webhookThat('Update'), payload)
    assert.deepEqual([body.action, body.record_id], ['updated', contact.id])
    const after = await test.contact(contact.id)
    assert.deepEqual(
      { ...after, version: 0, updated_at: '', updated_by: null },
      {
        ...contact,
        last_name: 'Lovelace',
        tags: ['vip', 'form'],
        address: { ...contact.address, city: 'Bern' },
        version: 0,
        updated_at: '',
        updated_by: null,
      },
    )
    assert.equal(after.updated_by.type, 'webhook')
  })

  it('uses the oldest of several matches', async () => {
    const oldest = await make({ email: 'many@example.com' })
    await make({ email: 'many@example.com' })
    const { body } = await test.send(await webhookThat('Update'), { email: 'many@example.com', phone: '' })
    assert.equal(body.record_id, oldest.id)
  })

  it('creates a record if the payload lacks the key', async () => {
    const webhook = await webhookThat('Skip')
    const answers = [await test.send(webhook, { name: 'Ada' }), await test.send(webhook, { name: 'Ada' })]
    assert.deepEqual(
      answers.map(({ body }) => body.action),
      ['created', 'created'],
    )
  })

  it('ignores deleted records', async () => {
    const contact = await make({ email: 'gone@example.com' })
    await test.api.request('DELETE', `/v1/objects/contacts/${contact.id}`)
    const { body } = await test.send(await webhookThat('Update'), { email: 'gone@example.com' })
    assert.equal(body.action, 'created')
  })

  it('matches by external_id if the webhook is configured so', async () => {
    const webhook = await webhookThat('Update', 'external_id')
    const first = await test.send(webhook, { externalId: 'crm-7', email: 'old@example.com' })
    assert.equal(first.body.action, 'created')
    const again = await test.send(webhook, { externalId: 'crm-7', email: 'new@example.com' })
    assert.deepEqual([again.body.action, again.body.record_id], ['updated', first.body.record_id])
    assert.equal((await test.contact(first.body.record_id)).email, 'new@example.com')
  })

  it('creates deals and tasks, and matches them by external_id', async () => {
    for (const [target_entity, name] of [
      ['Deal', 'name'],
      ['Task', 'title'],
    ] as const) {
      const webhook = await test.createWebhook({ target_entity })
      const first = await test.send(webhook, {
        title: 'Engine',
        external_id: 'x-1',
        email: 'ada@example.com',
      })
      assert.deepEqual([first.status, first.body.entity], [200, target_entity.toLowerCase()])
      const again = await test.send(webhook, { title: 'Engine 2', external_id: 'x-1' })
      assert.deepEqual([again.body.action, again.body.record_id], ['updated', first.body.record_id])
      const path = `/v1/objects/${target_entity.toLowerCase()}s/${first.body.record_id}`
      assert.equal((await test.api.request('GET', path)).body[name], 'Engine 2')
    }
  })

  it('adds a note with the message, except for a skipped payload', async () => {
    const rules = [
      { from: 'mail', to: 'email' },
      { from: 'text', to: 'note_content' },
    ]
    const field_mapping = { mode: 'manual', rules }
    const deduplication = { action: 'Skip', by: 'email' }
    const webhook = await test.createWebhook({ field_mapping, deduplication })
    const mail = 'writer@example.com'
    const long = '\u{1f600}'.repeat(65_536)
    const { body } = await test.send(webhook, { mail, text: `${long}xy` })
    const [entry] = await test.logs(webhook)
    assert.deepEqual(entry.warnings, ['the note was truncated to 65536 characters'])
    await test.send(webhook, { mail, text: 'Again' })
    await test.app('PATCH', `/webhooks/incoming/${webhook.id}`, { deduplication: { action: 'Update' } })
    await test.send(webhook, { mail, text: 'And again' })
    await test.send(webhook, { mail, text: ' ' })
    const notes = await test.api.request('GET', `/v1/objects/contacts/${body.record_id}/notes`)
    assert.deepEqual(
      notes.body.data.map((note: { body: string }) => note.body),
      ['And again', long],
    )
  })

  it('does not truncate a message of the maximum length', async () => {
    const webhook = await test.createWebhook()
    const message = '\u{1f600}'.repeat(40_000)
    const { body } = await test.send(webhook, { email: 'long@example.com', message })
    const notes = await test.api.request('GET', `/v1/objects/contacts/${body.record_id}/notes`)
    assert.equal(notes.body.data[0].body, message)
    const [entry] = await test.logs(webhook)
    assert.deepEqual(entry.warnings, [])
  })

  it('matches companies by email', async () => {
    const webhook = await test.createWebhook({ target_entity: 'Company' })
    const payload = { company: 'Engines', email: 'info@engines.example' }
    const first = await test.send(webhook, payload)
    assert.deepEqual([first.body.entity, first.body.action], ['company', 'created'])
    const again = await test.send(webhook, { ...payload, industry: 'Machines' })
    assert.deepEqual([again.body.action, again.body.record_id], ['updated', first.body.record_id])
  })

  describe('by another key', () => {
    before(async () => {
      await test.api.request('POST', '/v1/custom-fields/contacts', {
        body: { name: 'crm_id', label: 'CRM id', type: 'text', unique: true },
      })
      await test.api.request('POST', '/v1/custom-fields/contacts', {
        body: { name: 'not_unique', label: 'Not unique', type: 'text' },
      })
    })

    for (const [by, payload] of [
      ['email', (n: string) => ({ email: `${n}@race.test` })],
      ['custom_fields.crm_id', (n: string) => ({ first_name: 'Race', custom_fields: { crm_id: n } })],
      ['external_id', (n: string) => ({ first_name: 'Race', external_id: n })],
      ['payload.order.ref[0]', (n: string) => ({ first_name: 'Race', order: { ref: [n] } })],
    ] as const)
      for (const [action, atOnce] of [
        ['Update', by === 'email' ? 200 : 30],
        ['Skip', 30],
      ] as const)
        it(`${by}, ${action}: ${atOnce} concurrent equal payloads make one record`, async () => {
          const webhook = await test.createWebhook({
            rate_limit: 10_000,
            deduplication: { action, by },
          })
          const body = payload(`${action}-${by.replace(/[^a-z]/g, '')}`.toLowerCase())
          const answers = await Promise.all(Array.from({ length: atOnce }, () => test.send(webhook, body)))
          assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
          assert.equal(new Set(answers.map((answer) => answer.body.record_id)).size, 1)
          assert.equal(answers.filter((answer) => answer.body.action === 'created').length, 1)
        })

    it('the value at a path is the external_id; a payload without it creates a record', async () => {
      const webhook = await test.createWebhook({ deduplication: { action: 'Update', by: 'payload.ref' } })
      const send = async (body: object) => (await test.send(webhook, body)).body
      const first = await send({ ref: 7, first_name: 'Path' })
      assert.equal((await test.contact(first.record_id)).external_id, '7')
      const again = await send({ ref: 7, first_name: 'Paths' })
      assert.deepEqual([again.action, again.record_id], ['updated', first.record_id])
      assert.equal((await send({ first_name: 'Path' })).action, 'created')
    })

    it('must identify a record', async () => {
      for (const by of ['custom_fields.not_unique', 'custom_fields.missing', 'phone', 'payload.a[*]']) {
        const { body } = await test.app(
          'POST',
          '/webhooks/incoming',
          { name: 'x', deduplication: { by } },
          422,
        )
        assert.deepEqual(body.detail[0].loc, ['body', 'deduplication', 'by'], by)
      }
    })
  })

  it('retries of a sender are idempotent by its delivery id: Standard Webhooks, GitHub, Stripe', async () => {
    const { createHmac } = await import('node:crypto')
    const secret = 'whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldA=='
    const stripe = async (event: object) => {
      const body = JSON.stringify(event)
      const t = Math.floor(Date.now() / 1000)
      const v1 = createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')
      return (await test.send(webhook, body, { 'Stripe-Signature': `t=${t},v1=${v1}` })).body
    }
    const webhook = await test.createWebhook({
      secret,
      verification: { type: 'stripe' },
      deduplication: { action: 'Create Anyway' },
    })
    const event = {
      id: 'evt_1',
      object: 'event',
      type: 'customer.created',
      pending_webhooks: 2,
      data: { object: { id: 'cus_1', object: 'customer', email: 'stripe@x.test' } },
    }
    const first = await stripe(event)
    assert.equal(first.action, 'created', JSON.stringify(first))
    const retry = await stripe({ ...event, pending_webhooks: 1 })
    assert.deepEqual([retry.message, retry.record_id], ['already received', first.record_id])
    for (const name of ['webhook-id', 'X-GitHub-Delivery', 'svix-id']) {
      const other = await test.createWebhook({ deduplication: { action: 'Create Anyway' } })
      const send = async () => (await test.send(other, { email: 'again@x.test' }, { [name]: 'one' })).body
      const answers = await Promise.all([send(), send(), send()])
      assert.equal(new Set(answers.map(({ record_id }) => record_id)).size, 1, name)
      assert.equal(answers.filter(({ message }) => message === 'already received').length, 2, name)
    }
  })
})
