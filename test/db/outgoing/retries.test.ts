import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { loadDelivery } from '../../../db/outgoing/attempts.ts'
import { beginAttempt, endAttempt } from '../../../db/outgoing/moves/attempts.ts'
import { claimDeliveries } from '../../../db/outgoing/queue.ts'
import { takeRate } from '../../../db/outgoing/rate.ts'
import { waitForSlot } from '../../../db/outgoing/slots.ts'
import type { Database } from '../../../db/postgres/connect.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { planInTenant, planOf, statementsOf } from '../../support/plans.ts'

const RELAY = randomUUID()

/** The slots of due retries, and the rows that they read, without a worker. */
describe('due retries', () => {
  let db: TestDatabase
  let organization_id: string
  beforeEach(async () => {
    db = await createTestDatabase()
    organization_id = await createOrganization(db)
  })
  afterEach(() => db?.drop())

  async function createEndpoint(concurrency: number): Promise<string> {
    const id = randomUUID()
    await db.system('outgoing_webhooks').insert({
      organization_id,
      id,
      name: 'Test',
      url: 'https://example.com/',
      events: ['test.done'],
      secret_sealed: 'sealed',
      concurrency,
    })
    return id
  }

  /** Inserts `count` deliveries. Each `share`th waits for a due retry, the others for a first attempt. */
  async function fill(webhook_id: string, count: number, share: number): Promise<void> {
    await db.system.raw(
      `with made as (
         insert into events (organization_id, id, name, data, actor, matched_at)
         select ?, gen_random_uuid(), 'test.done', '{}', '{}', now() from generate_series(1, ?) returning id)
       insert into deliveries (organization_id, id, webhook_id, event_id, status, attempts, next_attempt_at, slot_wanted_at)
       select ?, m.id, ?, m.id, case when due then 'delivering' else 'queued' end, case when due then 1 else 0 end,
         case when due then now() end, case when due then now() end
       from (select id, row_number() over () % ? = 0 as due from made) m`,
      [organization_id, count, organization_id, webhook_id, share],
    )
  }
  const claim = () => claimDeliveries(db.system, RELAY, 32)
  const tenant = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(organization_id, testActor, work)
  const set = (values: object) => db.system('deliveries').update(values)
  const kinds = (claimed: { retry: boolean }[]) => [
    claimed.filter(({ retry }) => retry).length,
    claimed.filter(({ retry }) => !retry).length,
  ]

  it('are given a slot once, and again only if the attempt does not begin', async () => {
    await fill(await createEndpoint(2), 3, 1)
    assert.deepEqual(kinds(await claim()), [2, 0])
    assert.deepEqual(await claim(), [], 'both slots are given')
    await set({ slot_until: new Date(Date.now() - 1_000) })
    assert.deepEqual(kinds(await claim()), [2, 0])
  })

  it('have half of the slots while new deliveries wait, and these the other half', async () => {
    await fill(await createEndpoint(8), 100, 2)
    assert.deepEqual(kinds(await claim()), [4, 4])
    // All retries end.
    await db.system('deliveries').whereNotNull('slot_until').update({ status: 'succeeded' })
    assert.deepEqual(kinds(await claim()), [4, 0])
  })

  it('share a single slot with new deliveries', async () => {
    await fill(await createEndpoint(1), 200, 2)
    const taken = new Set<boolean>()
    for (let tries = 0; tries < 100 && taken.size < 2; tries++) {
      const claimed = await claim()
      assert.ok(claimed.length <= 1)
      for (const { id, retry } of claimed) {
        taken.add(retry)
        await db.system('deliveries').where({ id }).update({ status: 'succeeded' })
      }
    }
    assert.equal(taken.size, 2)
  })

  it('begin at once if a slot is free, and wait behind those that wait already', async () => {
    await fill(await createEndpoint(2), 3, 1)
    await set({ slot_wanted_at: null })
    const ids: string[] = await db.system('deliveries').pluck('id')
    const begin = (id: string) =>
      tenant(async (tx) => {
        const job = await loadDelivery(tx, id)
        if (job!.free! <= 0) return waitForSlot(tx, id).then(() => 'waits')
        return beginAttempt(tx, id, RELAY, job)
      })
    assert.equal(await begin(ids[0]!), 2)
    await db.system('deliveries').where({ id: ids[1] }).update({ slot_wanted_at: new Date() })
    assert.equal(await begin(ids[2]!), 'waits')
    assert.deepEqual(
      (await claim()).map(({ id }) => id),
      [ids[1]],
    )
  })

  it('do not begin on what others have changed, or taken, since they were read', async () => {
    await fill(await createEndpoint(1), 2, 1)
    await set({ slot_wanted_at: null })
    const [first, second]: string[] = await db.system('deliveries').pluck('id')
    const jobs = await tenant((tx) => Promise.all([first!, second!].map((id) => loadDelivery(tx, id))))
    await db.system('deliveries').where({ id: first }).update({ next_attempt_at: new Date() })
    assert.equal(await tenant((tx) => beginAttempt(tx, first!, RELAY, jobs[0])), undefined)
    assert.equal(await tenant((tx) => beginAttempt(tx, second!, RELAY, jobs[1])), 2)
    const again = await tenant((tx) => loadDelivery(tx, first!))
    assert.equal(
      await tenant((tx) => beginAttempt(tx, first!, RELAY, again)),
      undefined,
      'the only slot is taken',
    )
  })

  it('keep their time, and their attempt, when an attempt from before ends late', async () => {
    const webhookId = await createEndpoint(1)
    await fill(webhookId, 1, 1)
    const [id]: string[] = await db.system('deliveries').pluck('id')
    const failed = {
      succeeded: false,
      http_status: null,
      duration_ms: 1,
      response_headers: null,
      response_body: null,
      error: 'timeout',
    }
    const begin = () => tenant((tx) => beginAttempt(tx, id!, RELAY))
    const end = (attempt: number, result: typeof failed, next: Date | null) =>
      tenant((tx) => endAttempt(tx, { id: id!, webhookId }, attempt, result, next))
    const row = () => db.system('deliveries').first('status', 'next_attempt_at')
    const first = (await begin())!
    // The relay of the first attempt was taken for dead: a new release made the next one.
    const second = (await begin())!
    const tomorrow = new Date(Date.now() + 86_400_000)
    for (const next of [tomorrow, null]) {
      assert.equal(await end(first, failed, next), 'delivering')
      assert.deepEqual(await row(), { status: 'delivering', next_attempt_at: null })
    }
    await end(second, failed, tomorrow)
    await end(first, failed, new Date())
    assert.deepEqual(await row(), { status: 'delivering', next_attempt_at: tomorrow })
    // The endpoint has the event.
    assert.equal(await end(first, { ...failed, succeeded: true }, null), 'succeeded')
  })

  it('keep their time when an attempt of an older release finds no room in the minute', async () => {
    await fill(await createEndpoint(1), 1, 1)
    const [id]: string[] = await db.system('deliveries').pluck('id')
    await db.system('outgoing_webhooks').update({ rate_per_minute: 0 })
    const old = await tenant((tx) => loadDelivery(tx, id!))
    const row = () => db.system('deliveries').first('next_attempt_at')
    const tomorrow = new Date(Date.now() + 86_400_000)
    await set({ releases: 1, next_attempt_at: tomorrow })
    const rate = (job: typeof old) => tenant((tx) => takeRate(tx, id!, job!))
    assert.ok(await rate(old))
    assert.deepEqual(await row(), { next_attempt_at: tomorrow })
    // The next attempt of the same release has begun.
    await set({ releases: 0, next_attempt_at: null })
    assert.ok(await rate(old))
    assert.deepEqual(await row(), { next_attempt_at: null })
    assert.ok(await rate(await tenant((tx) => loadDelivery(tx, id!))))
    assert.ok((await row()).next_attempt_at > new Date())
  })

  it('read few rows, however many wait', async () => {
    const webhook_id = await createEndpoint(50)
    // These are before the waiting deliveries, also physically in the table.
    await fill(webhook_id, 10_000, 2)
    await set({ status: 'succeeded' })
    await fill(webhook_id, 10_000, 2)
    const client = new pg.Client({ connectionString: db.url })
    await client.connect()
    try {
      await client.query('analyze deliveries')
      const { id } = await db.system('deliveries').where({ status: 'delivering' }).first('id')
      const next = new Date(Date.now() + 60_000)
      const result = {
        succeeded: false,
        http_status: 503,
        duration_ms: 1,
        error: 'the receiver answered 503',
      }
      const answer = { ...result, response_headers: null, response_body: null }
      const inTenant = (work: Parameters<typeof tenant>[0]) => (listened: Database) =>
        listened.tenant(organization_id, testActor, work)
      const works: Record<string, (listened: Database) => Promise<unknown>> = {
        claim: ({ system }) => claimDeliveries(system, RELAY, 32),
        load: inTenant((tx) => loadDelivery(tx, id)),
        begin: inTenant((tx) =>
          beginAttempt(tx, id, RELAY, { releases: 0, next_attempt_at: null, has_slot: false }),
        ),
        end: inTenant((tx) => endAttempt(tx, { id, webhookId: webhook_id }, 1, answer, next)),
        wait: inTenant((tx) => waitForSlot(tx, id)),
      }
      for (const [name, work] of Object.entries(works)) {
        const statements = await statementsOf(db, work)
        assert.ok(statements.length > 0, name)
        for (const statement of statements) {
          const { rows } = await (name === 'claim'
            ? planOf(client, statement)
            : planInTenant(client, organization_id, statement))
          assert.ok(rows < 1_000, `${name} reads ${rows} rows: ${statement.sql}`)
        }
      }
    } finally {
      await client.end()
    }
  })
})
