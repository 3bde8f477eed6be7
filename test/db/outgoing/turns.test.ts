import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { loadDelivery } from '../../../db/outgoing/attempts.ts'
import { claimDeliveries } from '../../../db/outgoing/queue.ts'
import { ATTEMPTS } from '../../../db/outgoing/slots.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

const RELAY = randomUUID()

/** The order of slots: claims without a worker, so that attempts never end, as if receivers hung. */
describe('the turns of endpoints and organizations', () => {
  let db: TestDatabase
  beforeEach(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => db?.drop())

  async function createEndpoint(organization_id: string, values: object = {}) {
    const id = randomUUID()
    const event = `test.e${id.slice(0, 8)}`
    await db.system('outgoing_webhooks').insert({
      organization_id,
      id,
      name: 'Test',
      url: 'https://example.com/',
      events: [event],
      secret_sealed: 'sealed',
      concurrency: 100,
      ...values,
    })
    return { organization_id, id, event }
  }
  type Endpoint = Awaited<ReturnType<typeof createEndpoint>>

  const raise = ({ organization_id, event }: Endpoint, count: number, data: object = {}) =>
    db.tenant(organization_id, testActor, (tx) =>
      insertEvents(
        tx,
        Array.from({ length: count }, () => ({ name: event, data: { ...data } })),
      ),
    )
  async function queue(endpoint: Endpoint, count: number, data: object = {}) {
    await raise(endpoint, count, data)
    while ((await matchEvents(db.system)).more);
  }
  /** Claims attempts that do not end, until no slot is free. @returns the number per endpoint. */
  async function claimAll(): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    for (;;) {
      const claimed = await claimDeliveries(db.system, RELAY, 32)
      if (claimed.length === 0) return counts
      for (const { webhook_id } of claimed) counts.set(webhook_id, (counts.get(webhook_id) ?? 0) + 1)
      await db
        .system('deliveries')
        .where({ status: 'queued' })
        .whereNotNull('lease_until')
        .update({ status: 'delivering', slot_until: new Date(Date.now() + 3_600_000), lease_until: null })
    }
  }

  it('give an idle endpoint the next claim, before the bursts of all others', async () => {
    const organization = await createOrganization(db)
    const busy = []
    for (let n = 0; n < 5; n++) busy.push(await createEndpoint(organization))
    for (const endpoint of busy) await queue(endpoint, 50)
    const started = await claimDeliveries(db.system, RELAY, 10)
    assert.equal(new Set(started.map(({ webhook_id }) => webhook_id)).size, 5, 'each has its turn')
    const idle = await createEndpoint(organization)
    await queue(idle, 1)
    const [next] = await claimDeliveries(db.system, RELAY, 1)
    assert.equal(next!.webhook_id, idle.id)
  })

  it('give an idle organization the next claim, before the endpoints of a flooding one', async () => {
    const flooding = await createOrganization(db)
    for (let n = 0; n < 20; n++) await queue(await createEndpoint(flooding), 5)
    await claimDeliveries(db.system, RELAY, 10)
    const idle = await createEndpoint(await createOrganization(db))
    await queue(idle, 1)
    const [next] = await claimDeliveries(db.system, RELAY, 1)
    assert.equal(next!.webhook_id, idle.id)
  })

  it('leave slots free for others, however many endpoints of an organization hang', async () => {
    const organization = await createOrganization(db)
    const hanging = await createEndpoint(organization)
    await queue(hanging, 300)
    assert.deepEqual([...(await claimAll()).values()], [100], 'one alone')
    for (let n = 0; n < 12; n++) await queue(await createEndpoint(organization), 40)
    await claimAll()
    const held = await inProgress(organization)
    assert.ok(held < ATTEMPTS.all / 2, `${held} attempts`)
    const idle = await createEndpoint(organization)
    await queue(idle, 1)
    assert.equal((await claimAll()).get(idle.id), 1)
    // Another organization hangs too; a third one still gets its slots.
    const second = await createOrganization(db)
    for (let n = 0; n < 12; n++) await queue(await createEndpoint(second), 40)
    await claimAll()
    const third = await createEndpoint(await createOrganization(db))
    await queue(third, 5)
    assert.equal((await claimAll()).get(third.id), 5)
    const [row] = await db.system('deliveries').where({ status: 'delivering' }).count('* as count')
    assert.ok(Number(row!.count) <= ATTEMPTS.all, `${row!.count} attempts`)
  })

  it('refuse the retry of an endpoint that has its share of the slots, not that of another', async () => {
    const organization = await createOrganization(db)
    const [hanging, other] = [await createEndpoint(organization), await createEndpoint(organization)]
    await queue(hanging, 110)
    await queue(other, 1)
    await db
      .system('deliveries')
      .update({ status: 'delivering', slot_until: new Date(Date.now() + 3_600_000) })
    const retryOf = async ({ id: webhook_id }: Endpoint) => {
      const { id } = await db
        .system('deliveries')
        .where({ webhook_id, status: 'delivering' })
        .first<{ id: string }>('id')
      await db.system('deliveries').where({ id }).update({ next_attempt_at: db.system.fn.now() })
      const job = await db.tenant(organization, testActor, (tx) => loadDelivery(tx, id))
      return job!.free! > 0
    }
    assert.equal(await retryOf(other), true)
    await db.system('outgoing_webhooks').where({ id: hanging.id }).update({ concurrency: 1_000 })
    assert.equal(await retryOf(hanging), false)
  })

  it('match the event of one organization before the flood of another', async () => {
    const flooding = await createEndpoint(await createOrganization(db))
    const idle = await createEndpoint(await createOrganization(db))
    await raise(flooding, 1_000)
    await raise(idle, 2)
    assert.equal((await matchEvents(db.system, 4)).events, 4)
    const rows = await db.system('deliveries').orderBy('event_id').select('webhook_id', 'event_id')
    const matched = ({ id }: Endpoint) => rows.filter(({ webhook_id }) => webhook_id === id).length
    assert.deepEqual([matched(flooding), matched(idle)], [2, 2])
    const oldest = await db
      .system('events')
      .where({ organization_id: flooding.organization_id })
      .orderBy('id')
      .limit(2)
    assert.deepEqual(
      rows.filter(({ webhook_id }) => webhook_id === flooding.id).map((row) => row.event_id),
      oldest.map((row) => row.id),
    )
  })

  it('find the deliveries of other records behind a long queue for one record, where order is kept', async () => {
    const endpoint = await createEndpoint(await createOrganization(db), { ordered: true })
    const [stuck, other] = [randomUUID(), randomUUID()]
    await queue(endpoint, 1_500, { id: stuck })
    assert.deepEqual([...(await claimAll()).values()], [1])
    await new Promise((resolve) => setTimeout(resolve, 50))
    await queue(endpoint, 1, { id: other })
    for (let tries = 0; ; tries++) {
      const claimed = await claimDeliveries(db.system, RELAY, 32)
      if (claimed.length > 0) {
        const { subject_id } = await db.system('deliveries').where({ id: claimed[0]!.id }).first('subject_id')
        assert.deepEqual([claimed.length, subject_id], [1, other])
        return
      }
      assert.ok(tries < 200, 'not found in 200 claims')
    }
  })

  async function inProgress(organization_id: string): Promise<number> {
    const [row] = await db
      .system('deliveries')
      .where({ organization_id, status: 'delivering' })
      .count('* as count')
    return Number(row!.count)
  }
})
