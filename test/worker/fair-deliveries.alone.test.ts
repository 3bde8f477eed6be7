import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { insertEvents } from '../../db/events/outbox.ts'
import { testActor } from '../support/database.ts'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

const OTHERS = 49
const EACH = 2
const HANGING = 150

// Runs alone, because the other deliveries must arrive before the attempts of the silent endpoint time out, after 15 s.
describe('deliveries to 50 endpoints, of which one does not answer', () => {
  let on: Deliveries
  let worker: TestWorker
  let silent: Receiver

  before(async () => {
    on = await startDeliveries()
    silent = await startReceiver()
    silent.behave(...Array.from({ length: 2 * HANGING }, () => 'hang' as const))
  })
  after(async () => {
    silent?.close()
    await worker?.stop()
    await on?.stop()
  })

  it('arrive at the others, although all slots of the silent one are in use and its queue is longer', async () => {
    const { db, api } = on
    const hanging = await on.createWebhook({ url: silent.url, concurrency: 100, timeout_ms: 15_000 })
    const first = await on.createWebhook()
    const row = await db.system('outgoing_webhooks').where({ id: first.id }).first()
    const others = Array.from({ length: OTHERS }, () => ({ ...row, id: randomUUID() }))
    for (const other of others) other.events = [`test.e${other.id.slice(0, 8)}`]
    await db.system('outgoing_webhooks').insert(others)
    const raise = (names: string[]) =>
      db.tenant(api.organizationId, testActor, (tx) =>
        insertEvents(
          tx,
          names.map((name) => ({ name, data: {} })),
        ),
      )
    await raise(Array.from({ length: HANGING }, () => hanging.event))
    worker = await startWorker(db, { secretsKey: api.secretsKey })
    await until(async () => silent.received.length === 100)
    for (let n = 0; n < EACH; n++) await raise(others.map(({ events }) => events[0]))

    const ended = await until(async () => {
      const rows = await db.system('deliveries').whereNot({ webhook_id: hanging.id }).whereNotNull('ended_at')
      return rows.length === OTHERS * EACH && rows
    })
    assert.deepEqual(
      [...new Set(ended.map(({ status, attempts }) => `${status} ${attempts}`))],
      ['succeeded 1'],
    )
    const attempts = await db
      .system('delivery_attempts as a')
      .join('deliveries as d', 'd.id', 'a.delivery_id')
      .where('d.webhook_id', hanging.id)
      .select('a.status')
    // No attempt had to end for them: those of the silent endpoint are in progress, and none has timed out.
    assert.deepEqual(
      [attempts.length, new Set(attempts.map(({ status }) => status))],
      [100, new Set(['unknown'])],
    )
  })
})
