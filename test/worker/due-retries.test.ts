import assert from 'node:assert/strict'
import { withDeliveries } from '../support/with-deliveries.ts'
import { historyOf } from '../support/worker.ts'

describe('retries that are due together', () => {
  const on = withDeliveries()

  it('are each woken once, when they have a slot', async () => {
    const count = 20
    on.receiver.behave(...Array.from({ length: count }, () => 503))
    // All must have failed once before the first is due again.
    const webhook = await on.createWebhook({ retry_schedule: [8], concurrency: count })
    const ids = await Promise.all(Array.from({ length: count }, () => on.raise(webhook)))
    await Promise.all(ids.map(on.waiting))
    assert.equal((await on.app('PATCH', `/webhooks/outgoing/${webhook.id}`, { concurrency: 2 })).status, 200)
    // Long enough for both slots to be taken when most of the others are due, on a slow machine too.
    on.receiver.answerAfter(400)
    for (const id of ids) assert.equal((await on.ended(id)).status, 'succeeded')
    assert.ok(on.receiver.mostAtOnce() <= 2, `${on.receiver.mostAtOnce()} at once`)
    let signals = 0
    for (const id of ids) {
      const events = await historyOf(on.worker.client, `delivery:${id}`)
      signals += events.filter((one) => one.workflowExecutionSignaledEventAttributes).length
    }
    // Earlier, each end of an attempt signalled as many deliveries as slots were free, and woke the same ones again.
    // Those that are due while a slot is free, on a slow machine the most of them, need no signal.
    assert.ok(signals > 0 && signals <= count, `${signals} signals for ${count} retries`)
  })

  it('take the free slots without a signal', async () => {
    const count = 6
    on.receiver.behave(...Array.from({ length: count }, () => 503))
    const webhook = await on.createWebhook({ retry_schedule: [1], concurrency: 2 * count })
    const ids = await Promise.all(Array.from({ length: count }, () => on.raise(webhook)))
    for (const id of ids) {
      assert.equal((await on.ended(id)).attempt_count, 2)
      const events = await historyOf(on.worker.client, `delivery:${id}`)
      assert.ok(!events.some((one) => one.workflowExecutionSignaledEventAttributes))
    }
  })
})
