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

  describe('at which nobody answers', () => {
    type Endpoint = { failing_since: Date | null; backoff_until: Date | null }
    const endpoint = () =>
      db.system('outgoing_webhooks').first<Endpoint>('failing_since', 'backoff_until') as Promise<Endpoint>
    const failed = { succeeded: false, http_status: null, duration_ms: 1, response_headers: null }
    async function fail(more: object = {}, ofJob: object = {}): Promise<Date | null> {
      const job = { webhook_id: id, test: false, ...(await endpoint()), ...ofJob } as DeliveryJob
      await db.tenant(organization_id, testActor, async (tx) => {
        await noteEndpointHealth(tx, job, { ...failed, response_body: null, error: 'e', ...more })
        await tx.trx.raw('select 1')
      })
      return (await endpoint()).backoff_until
    }
    const set = (values: object) => db.system('outgoing_webhooks').update({ status: 'Active', ...values })
    const ago = (ms: number) => new Date(Date.now() - ms)
    const secondsTo = (date: Date | null) => (date!.getTime() - Date.now()) / 1_000
    beforeEach(async () => {
      await db.system('events').delete()
      await set({ failing_since: null, backoff_until: null })
    })

    it('backs off at once if its name does not resolve, and longer the longer it fails', async () => {
      const first = await fail({ unresolved: true })
      assert.ok(secondsTo(first) > 3 && secondsTo(first) < 8, String(first))
      assert.deepEqual(await fail({ unresolved: true }), first, 'once for the attempts of that moment')
      await set({ failing_since: ago(100_000), backoff_until: ago(1) })
      const next = secondsTo(await fail({ unresolved: true }))
      assert.ok(next > 23 && next < 32, String(next))
      await set({ failing_since: ago(4.5 * 86_400_000), backoff_until: ago(1) })
      assert.ok(secondsTo(await fail()) > 290)
    })

    it('backs off after a while if it does not connect, and not for its answers', async () => {
      assert.equal(await fail(), null)
      await set({ failing_since: ago(11_000) })
      assert.equal(await fail({ http_status: 500 }), null)
      assert.ok(await fail())
      assert.equal(await fail({ http_status: 500 }), null)
      assert.ok((await endpoint()).failing_since)
    })

    it('ends by a test that arrives; a test that does not begins none', async () => {
      assert.equal(await fail({ unresolved: true }, { test: true }), null)
      await set({ failing_since: ago(60_000), backoff_until: ago(-60_000) })
      assert.equal(await fail({ succeeded: true, http_status: 204 }, { test: true }), null)
      assert.ok((await endpoint()).failing_since)
    })

    it('is given one delivery after that time, and tests at once', async () => {
      const queue = async (test: boolean) => {
        const event_id = randomUUID()
        await db
          .system('events')
          .insert({ organization_id, id: event_id, name: 'test.done', data: {}, actor: testActor })
        const row = { organization_id, id: event_id, webhook_id: id, event_id, status: 'queued', test }
        await db.system('deliveries').insert(row)
        return event_id
      }
      const claimed = async () => (await claimDeliveries(db.system, RELAY, 20)).map((one) => one.id)
      for (let i = 0; i < 4; i++) await queue(false)
      await set({ failing_since: ago(60_000), backoff_until: ago(-60_000) })
      assert.deepEqual(await claimed(), [])
      const test = await queue(true)
      assert.deepEqual(await claimed(), [test])
      await db.system('deliveries').where({ id: test }).delete()
      await set({ backoff_until: ago(1) })
      assert.equal((await claimed()).length, 1)
      assert.deepEqual(await claimed(), [], 'while its attempt is in progress')
      await set({ backoff_until: null })
      assert.equal((await claimed()).length, 3)
    })
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
