import assert from 'node:assert/strict'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { releaseForQuota } from '../../../db/outgoing/moves/holds.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase, testActor } from '../../support/database.ts'
import { type App, signIn } from '../../support/session.ts'

describe('/app/usage', () => {
  let db: TestDatabase
  let api: TestApi
  let app: App
  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db)
    app = await signIn(db, api)
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  const organization = () => db.system('organizations').where({ id: api.organizationId })
  const usage = async () => {
    const { status, body } = await app('GET', '/usage')
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const raise = async (count: number) => {
    await db.tenant(api.organizationId, testActor, (tx) =>
      insertEvents(
        tx,
        Array.from({ length: count }, () => ({ name: 'use.made', data: {} })),
      ),
    )
    await matchEvents(db.system)
  }
  const queued = async () => (await db.system('deliveries').where({ status: 'queued' })).length

  it('counts the deliveries of the month, and those held above the quota until the next month', async () => {
    await organization().update({ plan: 'free', limits: JSON.stringify({ outgoing_per_month: 3 }) })
    await app('POST', '/webhooks/outgoing', { name: 'T', url: 'https://example.com/', events: ['use.made'] })
    await raise(5)
    const { plan, month, limits, held_for_quota } = await usage()
    assert.deepEqual([plan, held_for_quota, await queued()], ['free', 2, 3])
    assert.deepEqual(limits.outgoing_per_month, { used: 3, limit: 3 })
    assert.deepEqual(limits.outgoing_webhooks, { used: 1, limit: 5 })
    assert.deepEqual(limits.incoming_per_month, { used: 0, limit: 500 })
    const { body: list } = await app('GET', '/deliveries?status=held')
    assert.deepEqual([list.total, list.data[0].held_for], [2, 'quota'])
    assert.ok(Date.parse(month.from) <= Date.now() && Date.parse(month.to) > Date.now())

    await releaseForQuota(db.system)
    assert.equal(await queued(), 3)
    // Simulates the end of the month.
    await db
      .system('limit_months')
      .where({ organization_id: api.organizationId, subject: 'outgoing' })
      .update({ window_start: db.system.raw(`window_start - interval '1 month'`) })
    await releaseForQuota(db.system)
    assert.equal(await queued(), 5)
    const next = await usage()
    assert.deepEqual([next.held_for_quota, next.limits.outgoing_per_month.used], [0, 2])
  })

  it('shows no use of what the plan does not limit', async () => {
    await organization().update({ plan: 'enterprise', limits: '{}' })
    const { limits } = await usage()
    assert.deepEqual(limits.outgoing_per_month, { used: null, limit: null })
    assert.deepEqual(limits.outgoing_webhooks, { used: 1, limit: null })
  })
})
