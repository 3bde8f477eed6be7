import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { claimRuns } from '../../../db/runs/claims.ts'
import { lookBack } from '../../../db/runs/event-waits.ts'
import { listIdleRuns } from '../../../db/runs/queue.ts'
import { answeredWaits, dueWaits, insertWaits } from '../../../db/runs/waits.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { insertManyRuns } from '../../support/many-runs.ts'
import { planOf, statementsOf } from '../../support/plans.ts'
import { queueRun } from '../../support/worker.ts'

const WAITING = 100_000
/** SQL: the id of the run `i` and of its record. */
const ID = "cast('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0') as uuid)"

/** Half of them wait for an event of their own record, the others for one name of a thousand. */
describe(`${WAITING} runs that wait for events`, () => {
  let db: TestDatabase
  let organizationId: string
  const relay = { id: '00000000-0000-4000-8000-000000000000', starts: 100, active: 100 }

  before(async () => {
    db = await createTestDatabase()
    ;({ organizationId } = await insertManyRuns(db, WAITING, { id: ID, sleepsUntil: "'infinity'" }))
    await db.asOwner(async (client) => {
      await client.query(
        `insert into run_waits (organization_id, run_id, node_id, id, type, topics, since)
         select $1, ${ID}, 'wait', gen_random_uuid(), 'event',
           array[case when i % 2 = 0 then 'deal.won:' || ${ID} else 'invoice.n' || i % 1000 end],
           now() - interval '1 minute'
         from generate_series(1, $2::integer) i`,
        [organizationId, WAITING],
      )
      await client.query('vacuum analyze')
    })
  })
  after(() => db?.drop())

  const raise = (name: string, data: Record<string, unknown> = {}) =>
    db.tenant(organizationId, testActor, (tx) => insertEvents(tx, [{ name, data }]))
  const recordOf = (n: number) => `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`

  it('are found by index: an event reads the waits for its name and record only', async () => {
    for (const [name, data, most] of [
      ['deal.won', { id: recordOf(4_000) }, 60],
      ['deal.won', { id: randomUUID() }, 60],
      ['invoice.n7', {}, 400],
      ['invoice.other', {}, 60],
    ] as const) {
      await raise(name, data)
      let rows = 0
      const scanned: string[] = []
      // Each statement is executed twice: once for EXPLAIN, and rolled back.
      const sent = await statementsOf(db, ({ system }) => matchEvents(system))
      for (const statement of sent) {
        const plan = await db.asOwner((client) => planOf(client, statement))
        rows += plan.rows
        scanned.push(...plan.scanned.filter((table) => ['run_waits', 'runs'].includes(table)))
      }
      assert.deepEqual(scanned, [], name)
      assert.ok(rows < most, `${name}: ${rows} rows`)
    }
  })

  it('cost claims and the sweep nothing', async () => {
    const works: Parameters<typeof statementsOf>[1][] = [
      ({ system }) => claimRuns(system, relay, 100),
      ({ system }) => listIdleRuns(system, '30 seconds', new Date(), 200),
      ({ system }) => dueWaits.claim(system, 100),
    ]
    for (const work of works)
      for (const statement of await statementsOf(db, work)) {
        const plan = await db.asOwner((client) => planOf(client, statement))
        assert.ok(plan.rows < 50, `${plan.rows} rows: ${statement.sql}`)
      }
  })

  it('are answered once, by the first event', async () => {
    const waitOf = (n: number) =>
      db
        .system('run_waits')
        .where({ run_id: recordOf(n) })
        .first()
    await raise('deal.won', { id: recordOf(2), n: 1 })
    await raise('deal.won', { id: recordOf(2), n: 2 })
    await matchEvents(db.system)
    const { answer, answered_at } = await waitOf(2)
    assert.deepEqual([answer.name, answer.record.n], ['deal.won', 1])
    await raise('deal.won', { id: recordOf(2), n: 3 })
    await matchEvents(db.system)
    assert.deepEqual((await waitOf(2)).answered_at, answered_at)
    assert.ok((await answeredWaits.claim(db.system, 1_000)).some(({ run_id }) => run_id === recordOf(2)))
  })

  it('are compared one by one if one event is for thousands of them', async () => {
    const many = 1_400
    await db
      .system('run_waits')
      .where('run_id', '<=', recordOf(many))
      .update({
        topics: ['sale.begun'],
        answered_at: null,
        answer: null,
        lease_until: null,
      })
    // No later event can have been missed: the waits are found by their marks alone.
    await db
      .system('run_waits')
      .where('run_id', '<=', recordOf(many))
      .andWhereRaw('mod(hashtext(run_id::text), 2) = 0')
      .update({
        filter: '{{ event.data.big }}',
        settings: JSON.stringify({ values: {} }),
      })
    await raise('sale.begun', { big: false })
    await matchEvents(db.system)
    for (;;) {
      const due = await dueWaits.claim(db.system, 500)
      if (due.length === 0) break
      await Promise.all(due.map((key) => db.tenant(organizationId, testActor, (tx) => lookBack(tx, key))))
    }
    const [answered] = await db
      .system('run_waits')
      .where('run_id', '<=', recordOf(many))
      .whereNotNull('answered_at')
      .count()
    const [plain] = await db
      .system('run_waits')
      .where('run_id', '<=', recordOf(many))
      .whereNull('filter')
      .count()
    assert.deepEqual(answered, plain)
    assert.ok(Number(plain!.count) > 500 && Number(plain!.count) < many)
  })
})

describe('the wait for an event', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('finds an event that was matched while the wait was being written', async () => {
    const organizationId = await createOrganization(db)
    const id = await queueRun(db, organizationId, { nodes: [{ id: 'a', type: 'stop', config: {} }] })
    const wait = { type: 'event' as const, events: ['invoice.paid'], record_id: undefined, filter: undefined }
    const waitId = randomUUID()
    await db.tenant(organizationId, testActor, async (tx) => {
      await insertWaits(tx, id, [
        { path: '', node_id: 'a', id: waitId, for: { ...wait, since: 'now', expires_at: null }, values: {} },
      ])
      await new Promise((resolve) => setTimeout(resolve, 20))
      await db.tenant(organizationId, testActor, (other) =>
        insertEvents(other, [{ name: 'invoice.paid', data: {} }]),
      )
      await matchEvents(db.system)
    })
    const row = () => db.system('run_waits').where({ run_id: id }).first()
    assert.equal((await row()).answered_at, null)
    const [due] = await dueWaits.claim(db.system, 10)
    assert.equal(due?.id, waitId)
    await db.tenant(organizationId, testActor, (tx) => lookBack(tx, due!))
    assert.equal((await row()).answer.name, 'invoice.paid')
    assert.equal((await answeredWaits.claim(db.system, 10)).length, 1)
  })

  it('reads days in the time zone that the organization has now, whenever the wait was stored', async () => {
    const organizationId = await createOrganization(db)
    const zone = (timezone: string) =>
      db.system.raw(
        `update organizations set settings = settings || jsonb_build_object('timezone', cast(? as text)) where id = ?`,
        [timezone, organizationId],
      )
    const definition = { nodes: [{ id: 'a', type: 'stop', config: {} }] }
    const store = async (values: object, name: string) => {
      const id = await queueRun(db, organizationId, definition)
      const waitId = randomUUID()
      const filter = '{{ event.data.at == "2026-01-31" }}'
      const wait = { type: 'event' as const, events: [name], record_id: undefined, filter }
      await db.tenant(organizationId, testActor, (tx) =>
        insertWaits(tx, id, [
          {
            path: '',
            node_id: 'a',
            id: waitId,
            for: { ...wait, since: 'now', expires_at: null },
            values: { ...values },
          },
        ]),
      )
      return id
    }
    const raise = (name: string) =>
      db.tenant(organizationId, testActor, (tx) =>
        insertEvents(tx, [{ name, data: { at: '2026-01-30T23:30:00Z' } }]),
      )
    const isAnswered = async (id: string) =>
      (await db.system('run_waits').where({ run_id: id }).first()).answered_at !== null
    await zone('America/New_York')
    const before = await store({}, 'invoice.paid')
    const frozen = await store({ org: { timezone: 'America/New_York', name: 'Acme' } }, 'invoice.paid')
    const later = await store({}, 'invoice.sent')
    await raise('invoice.paid')
    await matchEvents(db.system)
    assert.deepEqual([await isAnswered(before), await isAnswered(frozen)], [false, false])
    await zone('Europe/Zurich')
    await raise('invoice.paid')
    await matchEvents(db.system)
    assert.deepEqual([await isAnswered(before), await isAnswered(frozen)], [true, true])
    await raise('invoice.sent')
    await db.system('events').where({ organization_id: organizationId }).update({ matched_at: new Date() })
    for (const key of await dueWaits.claim(db.system, 10))
      await db.tenant(organizationId, testActor, (tx) => lookBack(tx, key))
    assert.equal(await isAnswered(later), true)
  })
})
