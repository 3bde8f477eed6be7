import assert from 'node:assert/strict'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'
import { olderId, purgeAll } from '../../support/purge.ts'

describe('the retention of incoming webhooks', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  /** Moves all rows this many days into the past. */
  const daysPass = async (days: number) => {
    const { system } = test.db
    const created_at = system.raw('created_at - make_interval(days => ?)', [days])
    await system('incoming_deliveries').update({ created_at })
    await system('incoming_logs').update({ created_at, id: system.raw(olderId('id', days)) })
    await purgeAll(test.db)
  }

  it("is 30 days or the organization's setting for logs, and four days for deliveries", async () => {
    const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway' } })
    const deliver = async () => {
      const { body } = await test.send(webhook, { email: 'a@example.com' }, { 'Webhook-Id': 'msg_1' })
      return body.record_id
    }
    const first = await deliver()
    assert.equal(await deliver(), first)
    await daysPass(3)
    assert.equal(await deliver(), first)
    await daysPass(2)
    assert.notEqual(await deliver(), first)
    assert.equal((await test.logs(webhook)).length, 4)
    await daysPass(29)
    assert.equal((await test.logs(webhook)).length, 1)
    await test.db.system('organizations').update({ settings: '{"log_retention_days": 7}' })
    await daysPass(0)
    assert.equal((await test.logs(webhook)).length, 0)
  })
})
