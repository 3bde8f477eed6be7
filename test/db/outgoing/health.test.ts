import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type DeliveryJob, noteEndpointHealth } from '../../../db/outgoing/attempts.ts'
import { claimDeliveries } from '../../../db/outgoing/queue.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'

const RELAY = randomUUID()

describe('the health of an endpoint', () => {
  let db: TestDatabase
  let organization_id: string
  const id = randomUUID()
  before(async () => {
    db = await createTestDatabase()
    organization_id = await createOrganization(db)
    await db.system('outgoing_webhooks').insert({
      organization_id,
      id,
      name: 'Test',
      url: 'https://example.com/',
      events: ['test.done'],
      secret_sealed: 'sealed',
    })
  })
  after(() => db?.drop())

  const read = () =>
    db
      .system('outgoing_webhooks')
      .first<{ failing_since: Date | null; version: string; status: string }>(
        'failing_since',
        'status',
        db.system.raw('xmin::text as version'),
      )
  async function note(succeeded: boolean, http_status = succeeded ? 204 : 500) {
    const { failing_since } = (await read())!
    const job = { webhook_id: id, failing_since, test: false } as DeliveryJob
    const result = { succeeded, http_status, duration_ms: 1, response_headers: null, response_body: null }
    await db.tenant(organization_id, testActor, async (tx) => {
      await noteEndpointHealth(tx, job, { ...result, error: null })
      await tx.trx.raw('select 1')
    })
  }

  it('is written when it changes only: attempts that end together do not wait for its row', async () => {
    const healthy = await read()
    await note(true)
    assert.deepEqual(await read(), healthy)
    await note(false)
    const failing = await read()
    assert.ok(failing!.failing_since)
    await note(false)
    assert.deepEqual(await read(), failing)
    await note(true)
    assert.equal((await read())!.failing_since, null)
    await note(false, 410)
    assert.equal((await read())!.status, 'Inactive')
  })

  it('has first attempts made by the workflow task until it has failed for ten seconds', async () => {
    const event = randomUUID()
    await db.system('outgoing_webhooks').update({ status: 'Active', failing_since: new Date() })
    await db
      .system('events')
      .insert({ organization_id, id: event, name: 'test.done', data: {}, actor: testActor })
    await db
      .system('deliveries')
      .insert({ organization_id, id: event, webhook_id: id, event_id: event, status: 'queued' })
    const failing = async () => (await claimDeliveries(db.system, RELAY, 1))[0]!.failing
    assert.equal(await failing(), false)
    await db.system('outgoing_webhooks').update({ failing_since: new Date(Date.now() - 11_000) })
    await db.system('deliveries').update({ lease_until: null })
    assert.equal(await failing(), true)
  })
})
