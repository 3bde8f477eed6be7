import assert from 'node:assert/strict'
import type { Tenant } from '../../../db/postgres/tenancy.ts'
import { listQueues } from '../../../db/queue/depth.ts'
import { createBackfill, MAX_WAITING_TIMES, previewBackfill } from '../../../db/runs/backfills.ts'
import { markSynced, readSchedule } from '../../../db/workflows/schedules.ts'
import { activate, createWorkflow, deactivate, deleteWorkflow } from '../../../db/workflows/workflows.ts'
import { waitingFiresQueue } from '../../../worker/queues/waiting-fires.ts'
import { compile } from '../../../workflows/authoring/compile.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { completeDefinition } from '../../support/definition.ts'
import { recordStatements } from '../../support/statements.ts'

const MINUTE = 60_000
const START = Date.parse('2026-01-05T00:00:00Z')

/** Without a worker: what is queued stays queued. */
describe('backfills with allow_all', () => {
  let db: TestDatabase
  let queue: ReturnType<typeof waitingFiresQueue>
  beforeEach(async () => {
    db = await createTestDatabase()
    queue = waitingFiresQueue(db)
  })
  afterEach(() => db.drop())

  const tenant = <T>(id: string, work: (tx: Tenant) => Promise<T>) => db.tenant(id, testActor, work)
  const claim = () => queue.claim(db.system, 10)
  const takeTurn = async () => {
    const claimed = await claim()
    for (const row of claimed) await queue.start(undefined as never, row)
    return claimed
  }
  const runsOf = (workflow_id: string) => db.system('runs').where({ workflow_id }).orderBy('scheduled_at')
  const waitingOf = (workflow_id: string) =>
    db.system('schedule_fires').where({ workflow_id, status: 'waiting' })

  /** A workflow that fires each minute. */
  const everyMinute = (organizationId: string): Promise<string> =>
    tenant(organizationId, async (tx) => {
      const definition = completeDefinition({
        trigger: { type: 'schedule', every: '1m', timezone: 'UTC' },
        nodes: [{ id: 'stop', type: 'stop', config: {} }],
      })
      const content = { spec: null, definition, program: compile(definition) }
      const { id } = await createWorkflow(tx, { name: 'Every minute', description: null, ...content })
      await activate(tx, id)
      return id
    })
  const period = (count: number) => ({
    from: new Date(START),
    to: new Date(START + (count - 1) * MINUTE),
    overlap: 'allow_all' as const,
  })
  const backfilled = async (organizationId: string, count: number): Promise<string> => {
    const id = await everyMinute(organizationId)
    await tenant(organizationId, (tx) => createBackfill(tx, id, period(count)))
    return id
  }

  it('take turns: one of each organization is in work at a time, and its own take turns, too', async () => {
    const [large, small] = [await createOrganization(db), await createOrganization(db)]
    const own = [await backfilled(large, 200), await backfilled(large, 200), await backfilled(large, 200)]
    await backfilled(small, 200)
    const first = await claim()
    const turns = (rows: { organization_id: string }[]) => rows.map((row) => row.organization_id).sort()
    assert.deepEqual(turns(first), [large, small].sort())
    assert.deepEqual(await claim(), [], 'while they are in work')
    for (const row of first) await queue.start(undefined as never, row)
    const second = await takeTurn()
    const third = await takeTurn()
    const worked = [first, second, third].flat().filter((row) => row.organization_id === large)
    assert.deepEqual(worked.map((row) => row.workflow_id).sort(), own.sort())
  })

  it('insert the runs of a page with one statement', async () => {
    const id = await backfilled(await createOrganization(db), 200)
    const claimed = await claim()
    const statements = recordStatements()
    try {
      for (const row of claimed) await queue.start(undefined as never, row)
      const sent = statements.take()
      const inserts = sent.filter((statement) => /insert into runs/.test(statement))
      assert.deepEqual([inserts.length, sent.length <= 15], [1, true], sent.join('\n'))
    } finally {
      statements.stop()
    }
    const runs = await runsOf(id)
    assert.equal(runs.length, 25)
    assert.deepEqual(runs[1].trigger, {
      type: 'schedule',
      scheduled_at: '2026-01-05T00:01:00.000Z',
      every: '1m',
      timezone: 'UTC',
      backfill: true,
    })
    const fires = await db.system('schedule_fires').where({ workflow_id: id, status: 'started' })
    assert.deepEqual(new Set(fires.map((fire) => fire.run_id)), new Set(runs.map((run) => run.id)))
  })

  it('queue no more runs of a workflow than are soon started, and go on when those have started', async () => {
    const id = await backfilled(await createOrganization(db), 200)
    for (let turn = 0; turn < 6; turn++) await takeTurn()
    const ahead = (await runsOf(id)).length
    assert.ok(ahead < 100, `${ahead} runs are queued`)
    await db.system('runs').where({ workflow_id: id }).update({ status: 'running', started_at: new Date() })
    await takeTurn()
    assert.equal((await runsOf(id)).length, ahead + 25)
  })

  it('have so many waiting times per organization, as the preview says, too', async () => {
    const [full, other] = [await createOrganization(db), await createOrganization(db)]
    for (let i = 0; i < MAX_WAITING_TIMES / 10_000; i++) await backfilled(full, 10_000)
    const id = await everyMinute(full)
    for (const request of [createBackfill, previewBackfill])
      await assert.rejects(
        tenant(full, (tx) => request(tx, id, period(1))),
        (error: { type: string; message: string; details: { hint: string } }) => {
          assert.equal(error.type, 'conflict')
          assert.match(error.message, new RegExp(`at most ${MAX_WAITING_TIMES} times`))
          assert.match(error.details.hint, /shorter period, or repeat/)
          return true
        },
      )
    await backfilled(other, 10)
  })

  it('are a queue of which operators see the length', async () => {
    const organizationId = await createOrganization(db)
    await backfilled(organizationId, 40)
    const rows = (await listQueues(db.system)).filter(({ queue }) => queue === 'schedule_fires')
    assert.deepEqual(
      rows.map(({ status, count }) => [status, Number(count)]),
      [['waiting', 40]],
    )
  })

  it('leave no time waiting when the workflow is deactivated, also if its Schedule is deleted', async () => {
    const organizationId = await createOrganization(db)
    const [inactive, deleted] = [await backfilled(organizationId, 40), await backfilled(organizationId, 40)]
    await tenant(organizationId, (tx) => deactivate(tx, inactive))
    await takeTurn()
    assert.deepEqual(await waitingOf(inactive), [])
    await tenant(organizationId, (tx) => deleteWorkflow(tx, deleted))
    const key = { organization_id: organizationId, workflow_id: deleted }
    await markSynced(db.system, (await readSchedule(db.system, key))!)
    assert.deepEqual(await db.system('workflow_schedules').where(key), [])
    const [{ status, reason }] = await db.system('schedule_fires').where(key)
    assert.deepEqual([status, reason, await waitingOf(deleted)], ['skipped', 'inactive', []])
  })
})
