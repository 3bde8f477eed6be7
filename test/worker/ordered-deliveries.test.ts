import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { insertEvents } from '../../db/events/outbox.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'

describe('an ordered webhook, and one that is deactivated by the service', () => {
  const on = withDeliveries()

  const sent = () => on.receiver.received.map(({ body }) => JSON.parse(body).data.text)

  it('delivers the events of one record in order, through retries, and those of others meanwhile', async () => {
    const webhook = await on.createWebhook({ ordered: true, retry_schedule: [2] })
    const [first, second] = [randomUUID(), randomUUID()]
    on.receiver.behave(500)
    const raise = (events: [string, string][]) =>
      on.db.tenant(on.api.organizationId, testActor, (tx) =>
        insertEvents(
          tx,
          events.map(([id, text]) => ({ name: webhook.event, data: { id, text } })),
        ),
      )
    await raise([[first, 'a1']])
    await until(async () => on.receiver.received.length === 1)
    await raise([
      [first, 'a2'],
      [second, 'b1'],
      [first, 'a3'],
    ])
    await until(async () => on.receiver.received.length === 5)
    assert.deepEqual(sent(), ['a1', 'b1', 'a1', 'a2', 'a3'])
  })

  it('tells other webhooks when the service deactivates one', async () => {
    on.receiver.behave(410)
    const gone = await on.createWebhook()
    const owner = await on.createWebhook({ events: ['webhook.disabled'] })
    await on.ended(await on.raise(gone))
    await until(async () => on.receiver.received.length === 2)
    const { event, data } = JSON.parse(on.receiver.received[1]!.body)
    assert.deepEqual(
      [event, data.object, data.id, data.status, data.status_reason],
      ['webhook.disabled', 'outgoing_webhook', gone.id, 'Inactive', 'the receiver answered 410 Gone'],
    )
    // Otherwise the deactivations of the tests below would be delivered, too.
    await on.app('POST', `/webhooks/outgoing/${owner.id}/deactivate`)
  })

  it('deactivates a webhook after five days without a success, and not before', async () => {
    const webhook = await on.createWebhook({ retry_schedule: [] })
    const failedSince = (days: number) =>
      on.db
        .system('outgoing_webhooks')
        .where({ id: webhook.id })
        .update({ failing_since: new Date(Date.now() - days * 86_400_000) })
    const status = async () => (await on.app('GET', `/webhooks/outgoing/${webhook.id}`)).body.status
    await failedSince(4.9)
    on.receiver.behave(500)
    await on.ended(await on.raise(webhook))
    assert.equal(await status(), 'Active')
    await failedSince(5.1)
    on.receiver.behave(500)
    await on.ended(await on.raise(webhook))
    assert.equal(await status(), 'Inactive')
  })

  it('makes no more attempts in a minute than the rate cap of the webhook allows', async () => {
    const minute = () => Math.floor(Date.now() / 60_000)
    const first = minute()
    const webhook = await on.createWebhook({ rate_per_minute: 2, concurrency: 10 })
    const ids = await Promise.all([1, 2, 3, 4].map(() => on.raise(webhook)))
    const attempted = async () => {
      const rows = await Promise.all(ids.map(on.get))
      return rows.reduce((sum, { attempt_count }) => sum + attempt_count, 0)
    }
    await until(async () => (await attempted()) >= 2)
    // The relay has claimed since: this one was queued later.
    await on.ended(await on.raise(await on.createWebhook()))
    const attempts = await attempted()
    assert.ok(attempts <= 2 * (1 + minute() - first), `${attempts} attempts`)
    await on.app('PATCH', `/webhooks/outgoing/${webhook.id}`, { rate_per_minute: null })
    for (const id of ids) {
      await until(async () => {
        const row = await on.db.system('deliveries').where({ id }).first()
        // Its next attempt may have been moved to the next minute only now.
        if (row.next_attempt_at) await on.app('POST', `/deliveries/${id}/retry`)
        return row.ended_at
      })
      assert.equal((await on.get(id)).status, 'succeeded')
    }
  })
})
