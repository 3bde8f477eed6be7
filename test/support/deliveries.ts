import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { insertEvents } from '../../db/events/outbox.ts'
import { beginAttempt } from '../../db/outgoing/moves/attempts.ts'
import { startApi } from './api.ts'
import { createTestDatabase, testActor } from './database.ts'
import { startReceiver } from './receiver.ts'
import { signIn } from './session.ts'
import { until } from './until.ts'

/** A database, an API and a receiver, for tests of deliveries; without a worker. */
export async function startDeliveries() {
  const db = await createTestDatabase()
  const api = await startApi(db, { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' })
  const app = await signIn(db, api)
  const receiver = await startReceiver()

  const get = async (id: string) => {
    const { status, body } = await app('GET', `/deliveries/${id}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }

  /** Polls the row, since the API limits the requests of a user; then reads the delivery. */
  const getWhen = async (id: string, column: string) => {
    await until(async () => (await db.system('deliveries').where({ id }).first(column))?.[column])
    return get(id)
  }

  return {
    db,
    api,
    app,
    receiver,
    get,

    /** An endpoint that subscribes to its own event; it retries twice, one second apart. */
    async createWebhook(values: object = {}) {
      const event = `test.e${randomUUID().slice(0, 8)}`
      const { status, body } = await app('POST', '/webhooks/outgoing', {
        name: 'Receiver',
        url: receiver.url,
        events: [event],
        retry_schedule: [1, 1],
        ...values,
      })
      assert.equal(status, 201, JSON.stringify(body))
      return { ...body, event: body.events[0] } as { id: string; secret: string; event: string }
    },

    /** Raises the endpoint's event. @returns the id of its delivery. */
    async raise(webhook: { id: string; event: string }): Promise<string> {
      const data = { id: randomUUID(), first_name: 'Zoë' }
      const [event_id] = await db.tenant(api.organizationId, testActor, (tx) =>
        insertEvents(tx, [{ name: webhook.event, data }]),
      )
      return until(async () => {
        const row = await db.system('deliveries').where({ webhook_id: webhook.id, event_id }).first('id')
        return row?.id
      })
    },

    /** Raises the endpoint's event and begins its first attempt, whose worker then dies. @returns the delivery's id. */
    async interrupt(webhook: { id: string; event: string }): Promise<string> {
      // Inactive, so that no relay starts the delivery.
      await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
      const id = await this.raise(webhook)
      const set = (status: string, held_for: string | null = null) =>
        db.system('deliveries').where({ id }).update({ status, held_for })
      await set('queued')
      await db.tenant(api.organizationId, testActor, (tx) => beginAttempt(tx, id, randomUUID()))
      await set('held', 'endpoint')
      await app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
      return id
    },

    ended: (id: string) => getWhen(id, 'ended_at'),

    /** Waits until an attempt has failed and a retry is scheduled. */
    waiting: (id: string) => getWhen(id, 'next_attempt_at'),

    async stop() {
      receiver.close()
      await api.close()
      await db.drop()
    },
  }
}

export type Deliveries = Awaited<ReturnType<typeof startDeliveries>>
