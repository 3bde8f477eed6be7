import assert from 'node:assert/strict'
import { pino } from 'pino'
import { v7 as uuidv7 } from 'uuid'
import type { Purge } from '../../../db/retention/purge.ts'
import { PURGES } from '../../../db/retention/purges.ts'
import { purgeBatch } from '../../../db/retention/run.ts'
import { Purger } from '../../../worker/sweep/purges.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { purgeAll } from '../../support/purge.ts'

const DAY = 86_400_000
const ago = (days: number) => new Date(Date.now() - days * DAY)
const idOf = (days: number) => uuidv7({ msecs: ago(days).getTime() })

describe('purges', () => {
  let db: TestDatabase
  let organization_id: string
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())
  beforeEach(async () => {
    await db.system('organizations').delete()
    organization_id = await createOrganization(db)
  })

  const run = async (days: number, ended: number | null, values: object = {}) => {
    const id = idOf(days)
    await db.system('runs').insert({
      organization_id,
      id,
      kind: 'node_test',
      workflow_name: 'Test',
      trigger: '{}',
      inputs: '{}',
      status: ended === null ? 'running' : 'completed',
      created_at: ago(days),
      ended_at: ended === null ? null : ago(ended),
      ...values,
    })
    await db
      .system('run_segments')
      .insert({ organization_id, run_id: id, temporal_run_id: 'a', segment: 0, answer: '{}' })
    return id
  }
  /** A run of a workflow, which lives longer than a node test. */
  const workflowRun = async (days: number, ended: number | null) => {
    const workflow_id = uuidv7()
    await db.system('workflows').insert({ organization_id, id: workflow_id, name: 'W' })
    const version = {
      organization_id,
      workflow_id,
      version: 1,
      definition: '{}',
      program: '{}',
      created_by: '{}',
    }
    await db.system('workflow_versions').insert(version)
    return run(days, ended, { kind: 'run', workflow_id, workflow_version: 1 })
  }
  const left = async (table: string, column = 'id'): Promise<string[]> =>
    (await db.system(table).where({ organization_id }).orderBy(column).pluck(column)) as string[]

  it('delete runs past the retention of their organization, counted from their end, with their parts', async () => {
    await workflowRun(100, 91)
    const recent = await workflowRun(100, 89)
    const open = await workflowRun(100, null)
    await purgeAll(db)
    assert.deepEqual(await left('runs'), [recent, open].sort())
    assert.deepEqual(await left('run_segments', 'run_id'), [recent, open].sort())
    await db.system('organizations').update({ settings: '{"run_retention_days": 7}' })
    await purgeAll(db)
    assert.deepEqual(await left('runs'), [open])
  })

  it('delete node tests after a week', async () => {
    await run(8, 8)
    const kept = [await run(6, 6), await run(9, null)]
    await purgeAll(db)
    assert.deepEqual(await left('runs'), kept.sort())
  })

  it('delete ended deliveries with their attempts, and events without deliveries', async () => {
    const webhook_id = uuidv7()
    await db.system('outgoing_webhooks').insert({
      organization_id,
      id: webhook_id,
      name: 'W',
      url: 'https://a.example',
      events: ['*'],
      secret_sealed: 'x',
    })
    const event = async (days: number, status?: string) => {
      const id = idOf(days)
      await db.system('events').insert({
        organization_id,
        id,
        name: 'a.b',
        data: '{}',
        actor: '{}',
        matched_at: ago(days),
      })
      if (!status) return id
      const delivery = { organization_id, id: idOf(days), webhook_id, event_id: id, status }
      await db.system('deliveries').insert({
        ...delivery,
        ended_at: status === 'succeeded' ? ago(days) : null,
        held_for: status === 'held' ? 'endpoint' : null,
      })
      await db.system('delivery_attempts').insert({ organization_id, delivery_id: delivery.id, attempt: 1 })
      return id
    }
    await event(31)
    await event(31, 'succeeded')
    const kept = [await event(40, 'held'), await event(29), await event(29, 'succeeded')]
    const deleted = await purgeAll(db)
    assert.deepEqual([deleted.deliveries, deleted.events], [1, 2])
    assert.deepEqual(await left('events'), kept.sort())
    assert.equal((await left('delivery_attempts', 'delivery_id')).length, 2)
  })

  it('delete keys, windows and sources that have expired', async () => {
    const key = {
      organization_id,
      caller_id: uuidv7(),
      method: 'POST',
      path: '/',
      request_hash: Buffer.alloc(1),
    }
    await db.system('idempotency_keys').insert([
      { ...key, key: 'old', created_at: ago(1.1) },
      { ...key, key: 'new', created_at: ago(0.9) },
    ])
    const window = { organization_id, window_start: ago(40), used: 1 }
    await db.system('limit_windows').insert([
      { ...window, subject: 'minute', ends_at: ago(1) },
      { ...window, subject: 'current', ends_at: ago(-1) },
    ])
    await db.system('limit_months').insert([
      { ...window, subject: 'old', ends_at: ago(370) },
      { ...window, subject: 'last year', ends_at: ago(360) },
    ])
    await purgeAll(db)
    assert.deepEqual(await left('idempotency_keys', 'key'), ['new'])
    assert.deepEqual(await left('limit_windows', 'subject'), ['current'])
    assert.deepEqual(await left('limit_months', 'subject'), ['last year'])
  })

  it('read each old row once per pass, however many must stay', async () => {
    const purge = PURGES.find(({ name }) => name === 'runs')!
    const second = await createOrganization(db)
    for (let i = 0; i < 5; i++) await workflowRun(100, i % 2 ? 95 : null)
    organization_id = second
    await workflowRun(100, 95)
    const deleted: number[] = []
    for (let batch = await purgeBatch(db.system, { ...purge, rows: 2 }); ; ) {
      deleted.push(batch.deleted)
      if (!batch.more) break
      batch = await purgeBatch(db.system, { ...purge, rows: 2 }, batch.position)
    }
    assert.equal(
      deleted.reduce((sum, one) => sum + one),
      3,
    )
    assert.equal(deleted.length, 4)
  })

  it('skip rows that others have locked', async () => {
    const id = await run(8, 8)
    await db.system.transaction(async (trx) => {
      await trx('runs').where({ organization_id, id }).forUpdate()
      // Throws if a statement waits for the lock: after 30 s.
      await purgeAll(db)
      assert.deepEqual(await left('runs'), [id])
    })
    await purgeAll(db)
    assert.deepEqual(await left('runs'), [])
  })

  it('go on where one fails, in turns, and stop when the time is over', async () => {
    const batches: string[] = []
    const purge = (name: string, batch: Purge['batch']): Purge => ({
      name,
      tables: [],
      keeps: '',
      index: '',
      rows: 1,
      everyMinutes: 1,
      async batch(...args) {
        batches.push(name)
        return batch(...args)
      },
    })
    const more = async () => ({ deleted: 1, more: batches.length < 6 })
    const purger = new Purger({
      system: db.system,
      log: pino({ level: 'silent' }),
      purges: [
        purge('broken', (trx) => trx.raw('select * from nothing')),
        purge('a', more),
        purge('b', more),
      ],
    })
    await purger.run(() => true)
    assert.deepEqual(batches, ['broken', 'a', 'b', 'a', 'b', 'a', 'b'])
    batches.length = 0
    await purger.run(() => false)
    assert.deepEqual(batches, [])
  })
})
