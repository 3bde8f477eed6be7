import assert from 'node:assert/strict'
import { createUser } from '../../../db/users.ts'
import { type RequestOptions, startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

describe('incoming webhooks', () => {
  let db: TestDatabase
  let api: TestApi
  let session: Record<string, string>

  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    const person = { email: 'owner@example.com', password: 'correct horse battery', name: 'Owner' }
    await createUser(db.system, { ...person, organizationId: api.organizationId, role: 'owner' })
    const { email, password } = person
    const { headers, body } = await api.request('POST', '/app/session', {
      key: null,
      body: { email, password },
    })
    session = { Cookie: headers.get('set-cookie')!.split(';')[0]!, 'X-CSRF-Token': body.csrf_token }
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  const app = (method: string, path: string, body?: unknown) =>
    api.request(method, `/app${path}`, { key: null, headers: session, ...(body ? { body } : {}) })

  async function createWebhook(values: object = {}) {
    const { status, body } = await app('POST', '/webhooks/incoming', { name: 'Form', ...values })
    assert.equal(status, 201, JSON.stringify(body))
    return body as { id: string; secret: string; url: string }
  }

  const send = (
    webhook: { id: string; secret: string },
    body: unknown,
    headers: Record<string, string> = {},
  ) => {
    const options: RequestOptions = {
      key: null,
      body,
      headers: { 'X-Webhook-Secret': webhook.secret, ...headers },
    }
    return api.request('POST', `/webhooks/incoming/${webhook.id}`, options)
  }
  const logs = async (id: string) => (await app('GET', `/webhooks/incoming/${id}/logs`)).body.data

  it('turn a payload into a contact with its company, and log it', async () => {
    const webhook = await createWebhook()
    const payload = { firstName: 'Ada', lastName: 'Lovelace', email: 'Ada@example.com', company: 'Engines' }
    const { status, body, headers } = await send(webhook, payload)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      { ...body, record_id: '', message: '' },
      { success: true, message: '', record_id: '', entity: 'contact', action: 'created' },
    )
    assert.equal(headers.get('x-ratelimit-limit'), '60')
    const again = await send(webhook, payload)
    assert.equal(again.body.action, 'updated')
    assert.equal(again.body.record_id, body.record_id)
    const [last, first] = await logs(webhook.id)
    assert.deepEqual([first.status, first.action, last.action], ['Success', 'Created', 'Updated'])
  })

  it('make one contact of a hundred equal payloads at once', async () => {
    const webhook = await createWebhook({ rate_limit: 1000, deduplication: { action: 'Skip' } })
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => send(webhook, { email: 'one@example.com' })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal(new Set(answers.map(({ body }) => body.record_id)).size, 1)
    assert.equal(answers.filter(({ body }) => body.action === 'created').length, 1)
  })

  it('answer a retried delivery as the first time, and do nothing', async () => {
    const webhook = await createWebhook({ deduplication: { action: 'Create Anyway' } })
    const retry = () => send(webhook, { email: 'retry@example.com' }, { 'webhook-id': 'msg_1' })
    const first = await retry()
    const second = await retry()
    assert.equal(second.body.record_id, first.body.record_id)
    assert.equal(second.body.action, 'created')
  })

  it('refuse each in its way, and log it', async () => {
    const webhook = await createWebhook({ rate_limit: 3 })
    const errors = [
      await send({ ...webhook, secret: 'wrong' }, { email: 'x@example.com' }),
      await send(webhook, { email: 'not-an-email' }),
      await send(webhook, '{"a":'),
      await send(webhook, 'a', { 'Content-Type': 'text/plain' }),
      await send(webhook, {}),
    ]
    assert.deepEqual(
      errors.map(({ status, body }) => [status, body.error, body.success]),
      [
        [401, 'invalid_secret', false],
        [400, 'validation_failed', false],
        [400, 'invalid_payload', false],
        [415, 'unsupported_media_type', false],
        [429, 'rate_limited', false],
      ],
    )
    assert.ok(errors[1]!.body.details.email)
    assert.equal(errors[4]!.headers.get('retry-after'), String(errors[4]!.body.retry_after))
    const statuses = (await logs(webhook.id)).map((entry: { status: string }) => entry.status).reverse()
    assert.deepEqual(statuses, ['Failed', 'Failed', 'Failed', 'Failed', 'Blocked'])
  })

  it('keep out who is not on the whitelist, without using up the limit, and everyone while inactive', async () => {
    const webhook = await createWebhook({ ip_whitelist: '10.0.0.0/8\n192.0.2.1' })
    const outside = await send(webhook, { email: 'x@example.com' })
    assert.deepEqual([outside.status, outside.body.error], [403, 'ip_not_allowed'])
    assert.equal(outside.headers.get('x-ratelimit-remaining'), '60')
    await app('POST', `/webhooks/incoming/${webhook.id}/deactivate`)
    assert.equal((await send(webhook, {})).body.error, 'webhook_inactive')
  })

  it('do not exist for an unknown id', async () => {
    const { status, body } = await send({ id: crypto.randomUUID(), secret: 'x' }, {})
    assert.deepEqual([status, body.error], [404, 'not_found'])
  })
})
