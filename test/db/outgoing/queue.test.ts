import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { claimDeliveries, shortenLeases } from '../../../db/outgoing/queue.ts'
import { endRelay, seeRelay } from '../../../db/runs/relays.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

const RELAY = randomUUID()

describe('the queue of deliveries', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  async function queueOne(): Promise<void> {
    const organization_id = await createOrganization(db)
    await db.system('deliveries').delete()
    await db.system('outgoing_webhooks').insert({
      organization_id,
      id: randomUUID(),
      name: 'Test',
      url: 'https://example.com/',
      events: ['test.*'],
      secret_sealed: 'sealed',
    })
    await db.tenant(organization_id, testActor, (tx) => insertEvents(tx, [{ name: 'test.done', data: {} }]))
    await matchEvents(db.system)
  }

  it('gives a delivery of a dead relay in a new release, as long as the relay lives in the same', async () => {
    await queueOne()
    const releasedTo = async (relayId: string) => {
      await db.system('deliveries').update({ lease_until: new Date(Date.now() - 1) })
      return (await claimDeliveries(db.system, relayId, 10)).map(({ releases }) => releases)
    }
    const [first, second] = [randomUUID(), randomUUID()]
    for (const id of [first, second]) await seeRelay(db.system, { id, starts: 1, active: 1 })
    assert.deepEqual(await releasedTo(first), [0])
    assert.deepEqual(await releasedTo(first), [0], 'its own')
    assert.deepEqual(await releasedTo(second), [0], 'of a relay that lives')
    await endRelay(db.system, { id: second })
    assert.deepEqual(await releasedTo(second), [0], 'its own, although it has not been seen')
    assert.deepEqual(await releasedTo(first), [1], 'of a dead relay')
    assert.deepEqual(await releasedTo(first), [1], 'once')
  })

  it('gives a delivery whose start failed again after a second', async () => {
    await queueOne()
    const claimed = await claimDeliveries(db.system, RELAY, 10)
    assert.equal(claimed.length, 1)
    await shortenLeases(db.system, [{ ...claimed[0]!, releases: 1 }])
    const seconds = async () => {
      const row = await db
        .system('deliveries')
        .first(db.system.raw('extract(epoch from lease_until - now())::float8 as seconds'))
      return row.seconds as number
    }
    assert.ok((await seconds()) > 5, 'another release keeps its lease')
    await shortenLeases(db.system, claimed)
    assert.ok((await seconds()) <= 1)
    assert.deepEqual(await claimDeliveries(db.system, RELAY, 10), [])
    await db.system('deliveries').update({ lease_until: db.system.fn.now() })
    assert.equal((await claimDeliveries(db.system, RELAY, 10)).length, 1)
  })
})
