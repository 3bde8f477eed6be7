import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { claimDeliveries, shortenLeases } from '../../../db/outgoing/queue.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

describe('the queue of deliveries', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('gives a delivery whose start failed again after a second', async () => {
    const organization_id = await createOrganization(db)
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
    const claimed = await claimDeliveries(db.system, 10)
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
    assert.deepEqual(await claimDeliveries(db.system, 10), [])
    await new Promise((resolve) => setTimeout(resolve, 1_100))
    assert.equal((await claimDeliveries(db.system, 10)).length, 1)
  })
})
