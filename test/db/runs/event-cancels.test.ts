import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { cancelPage, eventCancels } from '../../../db/runs/event-cancels.ts'
import { overtakenBy } from '../../../db/runs/overtaken.ts'
import { activate } from '../../../db/workflows/workflows.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { delay } from '../../support/nodes.ts'
import { planInTenant, planOf, statementsOf } from '../../support/plans.ts'
import { queueRun, saveWorkflow } from '../../support/worker.ts'

const OPEN = 20_000
const idOf = (i: number | string) => `cast('00000000-0000-7000-8000-' || lpad(to_hex(${i}), 12, '0') as uuid)`

/** Each has a record of its own; as many others have ended. */
describe('an event that may cancel runs, of a host with another clock', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    const { id } = await saveWorkflow(db, organizationId, {
      nodes: [delay('sleep', '1h')],
      trigger: { type: 'event', events: ['order.placed'] },
      settings: { cancel_on: [{ event: 'order.cancelled' }] },
    })
    await db.tenant(organizationId, testActor, (tx) => activate(tx, id))
  })
  after(() => db?.drop())

  /** Raises an event now, with the id that a host makes whose clock is ahead by so many milliseconds. */
  const raise = (name: string, ahead: number) =>
    db.tenant(organizationId, testActor, (tx) =>
      insertEvents(tx, [{ name, data: {}, id: uuidv7({ msecs: Date.now() + ahead }) }]),
    )
  const compared = async () => Number((await db.system('event_cancels').count('* as count'))[0]!.count)
  /** Why a run that begins is cancelled, by the names of the events. */
  const overtaken = async () => {
    const { id } = await db.system('runs').where({ organization_id: organizationId }).first()
    const reason = await db.tenant(organizationId, testActor, (tx) => overtakenBy(tx, id))
    return reason?.match(/by the event (\S+)/)?.[1]
  }

  it('cancels those whose trigger was raised before it, whatever their ids', async () => {
    await raise('order.placed', 60_000)
    await matchEvents(db.system)
    assert.equal((await db.system('runs').where({ organization_id: organizationId })).length, 1)
    await setTimeout(5)
    await raise('order.cancelled', -60_000)
    await matchEvents(db.system)
    assert.equal(await compared(), 1)
  })

  it('leaves those whose trigger was raised after it', async () => {
    await db.system('event_cancels').delete()
    await db.system('runs').delete()
    await raise('order.cancelled', 60_000)
    await setTimeout(5)
    await raise('order.placed', -60_000)
    await matchEvents(db.system)
    assert.equal((await db.system('runs').where({ organization_id: organizationId })).length, 1)
    assert.equal(await compared(), 0)
    assert.equal(await overtaken(), undefined)
  })

  it('is found when a run begins whose trigger was raised before it, and matched after it', async () => {
    await db.system('event_cancels').delete()
    await db.system('runs').delete()
    await raise('order.placed', 5_000)
    await setTimeout(5)
    await raise('order.cancelled', 0)
    // One by one, in the order of the ids, as if there were hundreds between them.
    for (let n = 0; n < 2; n++) assert.equal((await matchEvents(db.system, 1)).events, 1)
    assert.equal(await compared(), 0)
    assert.equal(await overtaken(), 'order.cancelled')
  })
})

describe(`a run that begins after ${OPEN} events that would have cancelled it`, () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('reads none of them', async () => {
    const organizationId = await createOrganization(db)
    await db.asOwner(async (client) => {
      await client.query(
        `insert into events (organization_id, id, name, data, actor, created_at, matched_at)
         select $1, ${idOf('i')}, 'order.cancelled', '{}', '{}', now() - interval '1 day', now()
         from generate_series(1, $2::integer) i`,
        [organizationId, OPEN],
      )
      await client.query('vacuum analyze')
    })
    const run = await queueRun(db, organizationId, {
      nodes: [delay('sleep', '1h')],
      settings: { cancel_on: [{ event: 'order.cancelled' }] },
    })
    const statements = await statementsOf(db, (on) =>
      on.tenant(organizationId, testActor, (tx) => overtakenBy(tx, run)),
    )
    let rows = 0
    for (const statement of statements)
      rows += (await db.asOwner((client) => planInTenant(client, organizationId, statement))).rows
    assert.ok(rows < 20, `${rows}`)
  })
})

describe(`${OPEN} open runs that events may cancel`, () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    const { id } = await saveWorkflow(db, organizationId, {
      nodes: [delay('sleep', '1h')],
      settings: {
        cancel_on: [
          { event: 'contact.deleted', when: '{{ event.record.id == trigger.record.id }}' },
          { event: 'order.cancelled', when: '{{ event.data.id == trigger.record.id }}' },
        ],
      },
    })
    await db.asOwner(async (client) => {
      await client.query(
        `insert into runs (organization_id, id, workflow_id, workflow_version, workflow_name, status, trigger, inputs,
           record_id, temporal_run_id, started_at, created_at, sleeps_until, checked, cancel_on, ended_at)
         select $1, ${idOf('i')}, $2, 1, 'Test', case when i % 2 = 0 then 'completed' else 'running' end,
           jsonb_build_object('record', jsonb_build_object('id', ${idOf('i / 2')})), '{}', ${idOf('i / 2')}, 'a', now(),
           now() - interval '1 minute', case when i % 2 = 1 then timestamptz 'infinity' end, true, true,
           case when i % 2 = 0 then now() end
         from generate_series(1, $3::integer) i`,
        [organizationId, id, 2 * OPEN],
      )
      await client.query('vacuum analyze')
    })
  })
  after(() => db?.drop())

  const raise = (name: string, n: number) =>
    db.tenant(organizationId, testActor, (tx) =>
      insertEvents(tx, [
        { name, data: { id: `00000000-0000-7000-8000-${n.toString(16).padStart(12, '0')}` } },
      ]),
    )
  /** The rows that the statements of `work` read of the runs, and the tables that they read whole. */
  async function readBy(work: Parameters<typeof statementsOf>[1], isTenant: boolean) {
    let rows = 0
    for (const statement of await statementsOf(db, work)) {
      const plan = await db.asOwner((client) =>
        isTenant ? planInTenant(client, organizationId, statement) : planOf(client, statement),
      )
      assert.ok(!plan.scanned.includes('runs'), statement.sql)
      rows += plan.rows
    }
    return rows
  }
  const page = async (limit: number) => {
    const [job] = await eventCancels.claim(db.system, 1)
    return (await readBy(
      (listened) => listened.tenant(organizationId, testActor, (tx) => cancelPage(tx, job!, limit)),
      true,
    )) as number
  }

  it('are found by the record of the event, and those of other records are not read', async () => {
    await raise('contact.deleted', 4_000)
    assert.ok((await readBy(({ system }) => matchEvents(system), false)) < 60)
    assert.ok((await page(50)) < 60)
    const [run, ...others] = await db
      .system('runs')
      .where({ organization_id: organizationId })
      .whereNotNull('cancel_requested_at')
    assert.deepEqual([run.trigger.record.id, others], ['00000000-0000-7000-8000-000000000fa0', []])
    assert.equal(await db.system('event_cancels').first('id'), undefined)
  })

  it('cost an event about another record, or that no workflow names, nothing', async () => {
    await raise('contact.deleted', 10 * OPEN)
    await raise('contact.updated', 7)
    assert.ok((await readBy(({ system }) => matchEvents(system), false)) < 80)
    assert.equal(await db.system('event_cancels').first('id'), undefined)
  })

  it('are read page by page for any other condition', async () => {
    await raise('order.cancelled', 3_000)
    assert.ok((await readBy(({ system }) => matchEvents(system), false)) < 60)
    assert.ok((await page(50)) < 400)
  })
})
