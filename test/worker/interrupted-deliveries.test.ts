import assert from 'node:assert/strict'
import { beginAttempt } from '../../db/outgoing/moves/attempts.ts'
import { testActor } from '../support/database.ts'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

/** Attempts that a dead worker did not report. */
describe('interrupted deliveries', function () {
  this.timeout(30_000)
  let on: Deliveries
  let worker: TestWorker

  before(async () => {
    on = await startDeliveries()
    worker = await startWorker(on.db, { secretsKey: on.api.secretsKey })
  })
  beforeEach(() => on.receiver.behave())
  after(async () => {
    await worker?.stop()
    await on?.stop()
  })

  it('repeat the only attempt if the worker died in it', async () => {
    const webhook = await on.createWebhook({ retry_schedule: [] })
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const id = await on.raise(webhook)
    const set = (status: string) => on.db.system('deliveries').where({ id }).update({ status })
    await set('queued')
    await on.db.tenant(on.api.organizationId, testActor, (tx) => beginAttempt(tx, id))
    await set('held')
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    const { status, attempts } = await on.ended(id)
    assert.deepEqual(
      [status, attempts.map((one: { status: string }) => one.status), on.receiver.received.length],
      ['succeeded', ['unknown', 'succeeded'], 1],
    )
  })

  it('keep the rest of the retry schedule: an attempt without a result does not count', async () => {
    on.receiver.behave(500, 500)
    const webhook = await on.createWebhook({ retry_schedule: [1] })
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const id = await on.raise(webhook)
    const set = (status: string) => on.db.system('deliveries').where({ id }).update({ status })
    await set('queued')
    await on.db.tenant(on.api.organizationId, testActor, (tx) => beginAttempt(tx, id))
    await set('held')
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    const { status, error, attempt_count } = await on.ended(id)
    assert.deepEqual([status, error, attempt_count], ['failed', 'the receiver answered 500', 3])
    assert.equal(on.receiver.received.length, 2)
  })
})
