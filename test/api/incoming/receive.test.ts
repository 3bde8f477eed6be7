import assert from 'node:assert/strict'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

describe('incoming webhooks', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  it('map a payload to a contact with its company, and log it', async () => {
    const webhook = await test.createWebhook()
    const payload = { firstName: 'Ada', lastName: 'Lovelace', email: 'Ada@example.com', company: 'Engines' }
    const { status, body, headers } = await test.send(webhook, payload)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      { ...body, record_id: '', message: '' },
      { success: true, message: '', record_id: '', entity: 'contact', action: 'created' },
    )
    assert.equal(headers.get('x-ratelimit-limit'), '60')
    const again = await test.send(webhook, payload)
    assert.equal(again.body.action, 'updated')
    assert.equal(again.body.record_id, body.record_id)
    const [last, first] = await test.logs(webhook)
    assert.deepEqual([first.status, first.action, last.action], ['Success', 'Created', 'Updated'])
  })

  it('refuse an invalid company of a rule, with the reason; leave out a guessed one', async () => {
    const rules = [
      { from: 'email', to: 'email' },
      { from: 'company', to: 'company_name' },
    ]
    const webhook = await test.createWebhook({ field_mapping: { mode: 'manual', rules } })
    const payload = { email: 'long@example.com', company: 'x'.repeat(300) }
    const { status, body } = await test.send(webhook, payload)
    assert.deepEqual([status, body.error], [400, 'validation_failed'])
    assert.deepEqual(body.details, { company_name: 'must have at most 255 characters' })
    const blank = await test.send(webhook, { email: 'blank@example.com', company: ' ' })
    assert.equal(blank.status, 200)
    const guessed = await test.send(await test.createWebhook(), payload)
    assert.deepEqual(
      [guessed.status, guessed.body.warnings],
      [200, ['company_name (from company) was left out: must have at most 255 characters']],
    )
  })

  it('create one contact from a hundred concurrent equal payloads', async () => {
    const webhook = await test.createWebhook({ rate_limit: 1000, deduplication: { action: 'Skip' } })
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => test.send(webhook, { email: 'one@example.com' })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(new Set(answers.map(({ body }) => body.record_id)).size, 1)
    assert.equal(answers.filter(({ body }) => body.action === 'created').length, 1)
  })

  it('replay the answer to a repeated delivery, without effects', async () => {
    const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway' } })
    const retry = () => test.send(webhook, { email: 'retry@example.com' }, { 'webhook-id': 'msg_1' })
    const first = await retry()
    const second = await retry()
    assert.equal(second.body.record_id, first.body.record_id)
    assert.equal(second.body.action, 'created')
  })

  it('process a repeated delivery again after four days, also before the purge', async () => {
    const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway' } })
    const send = () => test.send(webhook, { email: 'day@example.com' }, { 'webhook-id': 'msg_2' })
    const first = await send()
    const age = (seconds: number) =>
      test.db
        .system('incoming_deliveries')
        .where({ webhook_id: webhook.id })
        .update({ created_at: new Date(Date.now() - seconds * 1_000) })
    await age(4 * 86_400 - 60)
    assert.equal((await send()).body.record_id, first.body.record_id)
    await age(4 * 86_400 + 1)
    const later = await send()
    assert.notEqual(later.body.record_id, first.body.record_id)
    assert.equal((await send()).body.record_id, later.body.record_id)
  })

  it('refuse other addresses than the whitelist without counting them, and all requests while inactive', async () => {
    const webhook = await test.createWebhook({ ip_whitelist: '10.0.0.0/8\n192.0.2.1' })
    const outside = await test.send(webhook, { email: 'x@example.com' })
    assert.deepEqual([outside.status, outside.body.error], [403, 'ip_not_allowed'])
    assert.equal(outside.headers.get('x-ratelimit-remaining'), '60')
    await test.app('POST', `/webhooks/incoming/${webhook.id}/deactivate`)
    assert.equal((await test.send(webhook, {})).body.error, 'webhook_inactive')
  })
})
