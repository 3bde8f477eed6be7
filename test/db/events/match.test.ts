import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { MATCHED_AT_ONCE, matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

/** This would be more than 65,535 parameters if every value of a delivery were one. */
const ENDPOINTS = 16

describe('the match of events and endpoints', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('creates the deliveries of a full batch of events, whatever the number of endpoints', async () => {
    const organization_id = await createOrganization(db)
    const endpoint = () => ({
      organization_id,
      id: randomUUID(),
      name: 'Test',
      url: 'https://example.com/',
      events: ['test.*'],
      secret_sealed: 'sealed',
    })
    await db.system('outgoing_webhooks').insert(Array.from({ length: ENDPOINTS }, endpoint))
    const event = () => ({ name: 'test.done', data: {} })
    await db.tenant(organization_id, testActor, (tx) =>
      insertEvents(tx, Array.from({ length: MATCHED_AT_ONCE }, event)),
    )
    assert.equal((await matchEvents(db.system)).events, MATCHED_AT_ONCE)
    const created = await db
      .system('deliveries')
      .where({ organization_id })
      .countDistinct({ events: 'event_id', endpoints: 'webhook_id' })
      .count({ all: '*' })
    const all = MATCHED_AT_ONCE * ENDPOINTS
    assert.deepEqual(created, [{ events: MATCHED_AT_ONCE, endpoints: ENDPOINTS, all }])
    assert.equal((await matchEvents(db.system)).events, 0)
  })
})
