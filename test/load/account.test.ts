import assert from 'node:assert/strict'
import { v7 as uuidv7 } from 'uuid'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { recordsOf } from '../support/records.ts'
import { queueRun } from '../support/worker.ts'
import { account, linesOf } from './account.ts'
import { emptyLedger, type Ledger } from './ledger.ts'
import type { Outside } from './outside.ts'
import { MANY_CALLS } from './target.ts'

/** Rows as they must be after a contact, an incoming webhook, a run and a cancellation. */
interface World {
  db: TestDatabase
  ledger: Ledger
  outside: Pick<Outside, 'calls' | 'deliveries'>
  /** The run that was started by name. */
  run: string
  contact: string
}

async function createWorld(db: TestDatabase): Promise<World> {
  const organization_id = await createOrganization(db)
  const { create } = recordsOf(db, organization_id)
  const contact = async (fields: Record<string, unknown>) => (await create('contacts', fields)).id
  const calls: Outside['calls'] = new Map()
  const insertRun = async (name: string, status: string, type: string, record_id: string | null = null) => {
    const nodes = [{ id: 'a', type: 'set_fields', config: { fields: {} } }]
    const id = await queueRun(db, organization_id, { name, nodes })
    await db.system('runs').where({ id }).update({ status, trigger: { type }, record_id })
    if (name !== 'Load') return id
    for (const first_name of ['before', 'after']) await contact({ first_name, last_name: id })
    calls.set(id, [`${id}:call`])
    return id
  }
  const created = await contact({ email: 'one@a.example' })
  const received = await contact({ email: 'two@b.example' })
  await insertRun('Load', 'completed', 'webhook', received)
  const run = await insertRun('Load', 'completed', 'api')
  const cancelled = await insertRun('Long', 'cancelled', 'api')
  const answered = await insertRun('Asks', 'completed', 'api')
  await db
    .system('runs')
    .where({ id: answered })
    .update({ outputs: { decision: 'approved' } })
  const webhook = { organization_id, id: uuidv7(), name: 'Load', url: 'http://localhost/' }
  await db.system('outgoing_webhooks').insert({ ...webhook, events: ['*'], secret_sealed: '' })
  await db.system('events').update({ matched_at: new Date() })
  const deliveries: Outside['deliveries'] = new Map()
  for (const { id } of await db.system('events').select('id')) {
    const row = { organization_id, id: uuidv7(), webhook_id: webhook.id, event_id: id, status: 'succeeded' }
    await db.system('deliveries').insert(row)
    const { id: delivery_id } = row
    await db
      .system('delivery_attempts')
      .insert({ organization_id, delivery_id, attempt: 1, status: 'succeeded' })
    deliveries.set(`msg_${id}_${webhook.id}`, 1)
  }
  const at = Date.now()
  const ledger = {
    ...emptyLedger(),
    contacts: [{ id: created, at }],
    received: [{ id: received, at }],
    runs: [{ id: run, at }],
    cancelled: [{ id: cancelled, at }],
    answered: [{ id: answered, at }],
  }
  return { db, ledger, outside: { calls, deliveries }, run, contact: created }
}

/** Damages, and the checks that must report them. */
const CASES: [title: string, damage: (world: World) => unknown, ...checks: string[]][] = [
  [
    'a contact that is gone',
    ({ db, contact }) => db.system('contacts').where({ id: contact }).delete(),
    'acknowledged contacts exist',
    'repeated requests created no second contact',
  ],
  [
    'a contact that exists twice',
    ({ ledger }) => ledger.contacts.pop(),
    'repeated requests created no second contact',
  ],
  [
    'a run that is gone',
    ({ db, run }) => db.system('runs').where({ id: run }).delete(),
    'acknowledged runs completed',
    'repeated requests started no second run',
  ],
  [
    'a run that was started twice',
    ({ ledger }) => ledger.runs.pop(),
    'repeated requests started no second run',
  ],
  [
    'a run that failed',
    ({ db, run }) => db.system('runs').where({ id: run }).update({ status: 'failed' }),
    'acknowledged runs completed',
    'all runs ended',
  ],
  [
    'a run that still runs',
    ({ db, run }) => db.system('runs').where({ id: run }).update({ status: 'running' }),
    'acknowledged runs completed',
    'all runs ended',
  ],
  [
    'a cancelled run that completed',
    ({ db, ledger }) =>
      db.system('runs').where({ id: ledger.cancelled[0]!.id }).update({ status: 'completed' }),
    'acknowledged cancellations ended their run',
  ],
  [
    'a run with another answer',
    ({ db, ledger }) =>
      db
        .system('runs')
        .where({ id: ledger.answered[0]!.id })
        .update({ outputs: { decision: 'rejected' } }),
    'acknowledged answers completed their run',
  ],
  [
    'an incoming webhook without a run',
    ({ db }) => db.system('runs').whereNotNull('record_id').update({ record_id: null }),
    'incoming webhooks started one run',
  ],
  [
    'an effect that is missing',
    ({ db, run }) => db.system('contacts').where({ last_name: run, first_name: 'after' }).delete(),
    'effects of runs happened exactly once',
  ],
  [
    'an effect that happened twice',
    ({ db, run }) =>
      db.system('contacts').where({ last_name: run, first_name: 'after' }).update({ first_name: 'before' }),
    'effects of runs happened exactly once',
  ],
  [
    'a call that was not made',
    ({ outside, run }) => outside.calls.delete(run),
    'completed runs made their call with one idempotency key',
  ],
  [
    'a call that was repeated with another idempotency key',
    ({ outside, run }) => outside.calls.get(run)!.push('another'),
    'completed runs made their call with one idempotency key',
  ],
  [
    'an event that was not matched',
    async ({ db }) => {
      const event = await db.system('events').first('id')
      await db.system('events').where(event).update({ matched_at: null })
    },
    'events were matched once per webhook',
  ],
  [
    'an event without a delivery',
    async ({ db }) => {
      const delivery = await db.system('deliveries').first('id')
      await db.system('deliveries').where(delivery).delete()
    },
    'events were matched once per webhook',
    'what arrived has the id of a delivery',
  ],
  [
    'a delivery that failed',
    async ({ db }) => {
      const delivery = await db.system('deliveries').first('id')
      await db.system('deliveries').where(delivery).update({ status: 'failed' })
    },
    'all deliveries succeeded',
  ],
  [
    'a delivery that did not arrive',
    ({ outside }) => outside.deliveries.delete([...outside.deliveries.keys()][0]!),
    'succeeded deliveries arrived',
  ],
  [
    'a delivery that arrived with another id',
    ({ outside }) => outside.deliveries.set('msg_another', 1),
    'what arrived has the id of a delivery',
  ],
  [
    'a successful attempt that is not in the log',
    ({ db }) => db.system('delivery_attempts').update({ status: 'unknown' }),
    'succeeded deliveries are in the log of attempts',
  ],
  [
    'a run of many calls that made none of them',
    ({ ledger, run }) => ledger.manyCalls.push({ id: run, at: Date.now() }),
    'each of many calls was made with one idempotency key',
  ],
  [
    'a run of many calls, one of which was repeated with another idempotency key, that was cancelled',
    ({ ledger, outside }) => {
      const { id } = ledger.cancelled[0]!
      ledger.manyCalls.push({ id, at: Date.now() })
      for (let n = 0; n < MANY_CALLS; n++) outside.calls.set(`${id} ${n}`, [`${id}:${n}`])
      outside.calls.get(`${id} 0`)!.push('another')
    },
    'acknowledged runs of many calls completed',
    'each of many calls was made with one idempotency key',
  ],
  [
    'a run of a backlog that was lost',
    ({ ledger }) => ledger.backlog.push({ id: uuidv7(), at: Date.now() }),
    'runs of a backlog were started once',
  ],
  [
    'a run of a backlog that two workflows executed',
    async ({ db, ledger, run }) => {
      ledger.backlog.push({ id: run, at: Date.now() })
      const { organization_id } = await db.system('runs').where({ id: run }).first()
      await db.system('run_segments').insert(
        ['one', 'other'].map((temporal_run_id) => ({
          organization_id,
          run_id: run,
          temporal_run_id,
          segment: 1,
          answer: '{}',
        })),
      )
    },
    'runs of a backlog were started once',
  ],
  ['a request that was given up', ({ ledger }) => ledger.abandoned.push('503'), 'requests were acknowledged'],
]

describe('the accountant of the load', () => {
  let db: TestDatabase
  beforeEach(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => db.drop())

  const complaints = async (world: World) => {
    const { checks } = await account(world)
    return checks.filter(({ wrong }) => wrong.length > 0).map(({ name }) => name)
  }

  it('has no complaint if all is there', async () => {
    const world = await createWorld(db)
    assert.deepEqual(await complaints(world), [], linesOf(await account(world)).join('\n'))
  })

  for (const [title, damage, ...checks] of CASES)
    it(`complains about ${title}`, async () => {
      const world = await createWorld(db)
      await damage(world)
      assert.deepEqual(await complaints(world), checks)
    })
})
