import assert from 'node:assert/strict'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { countLateRuns } from '../../db/queue/depth.ts'
import { listLate, raiseLate } from '../../db/runs/late.ts'
import { CHAIN_START, createRuns } from '../../db/runs/runs.ts'
import { listRuns } from '../../db/runs/views.ts'
import { lateRunsQueue } from '../../worker/queues/late-runs.ts'
import type { Definition } from '../../workflows/language/definition.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { recordStatements } from '../support/statements.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, startWorker, testLog, untilRun } from '../support/worker.ts'

const sleeping = (time: string, settings: Definition['settings'] = {}) => ({
  nodes: [{ id: 'sleep', type: 'delay', config: { for: time } }],
  settings,
})
const eventsOf = (db: TestDatabase, id: string) =>
  db.system('events').where({ subject_id: id, name: 'workflow.late' })

describe('a run that is open for longer than expected', () => {
  const suite = withWorker()
  const queue = (definition: Parameters<typeof queueRun>[2]) =>
    queueRun(suite.db, suite.organizationId, definition)
  const tenant = <T>(work: (tx: Tenant) => Promise<T>) =>
    suite.db.tenant(suite.organizationId, testActor, work)

  it('raises workflow.late once, is listed as late and counted, and can be found in Temporal', async () => {
    const run = await queue(sleeping('1d', { expected_within: '300ms' }))
    const others = [
      await queue(sleeping('1d', { expected_within: '1h' })),
      await queue(sleeping('1d')),
      await queue(sleeping('1ms', { expected_within: '10m' })),
    ]
    const [event] = await until(async () => {
      const found = await eventsOf(suite.db, run)
      return found.length > 0 && found
    }, 'the event')
    assert.deepEqual(
      [event.data.id, event.data.object, event.data.error, event.data.workflow_name],
      [run, 'run', null, 'Test'],
    )
    // On a busy machine it may be late before it begins.
    assert.ok(['queued', 'running'].includes(event.data.status), event.data.status)
    await untilRun(suite.db, run, ['running'])
    for (const other of others) await untilRun(suite.db, other, ['running', 'completed'])
    // A relay that found it at the same time.
    await tenant((tx) => raiseLate(tx, [run, ...others]))
    assert.deepEqual(await listLate(suite.db.system, 10), [])
    assert.equal((await eventsOf(suite.db, run)).length, 1)
    for (const other of others) assert.deepEqual(await eventsOf(suite.db, other), [])

    const options = { order: 'desc', count: 'exact' } as const
    const list = (late: boolean) => tenant((tx) => listRuns(tx, { late }, { limit: 50, offset: 0 }, options))
    const ids = async (late: boolean) => (await list(late)).data.map(({ id }) => id).sort()
    assert.deepEqual([await ids(true), await ids(false)], [[run], others.sort()])
    assert.equal(await countLateRuns(suite.db.system), 1)

    const now = new Date().toISOString()
    const query = `ExecutionStatus = 'Running' and AgxExpectedBy < '${now}' and AgxOrganization = '${suite.organizationId}'`
    const found = await until(async () => {
      const ids: string[] = []
      for await (const { workflowId } of suite.worker.client.workflow.list({ query })) ids.push(workflowId)
      return ids.length > 0 && ids
    }, 'Temporal to list it')
    assert.deepEqual(found, [`run:${run}`])
  })
})

describe('a run that became late while no worker lived', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db.drop())

  it('raises workflow.late when one does, also if the run ends first', async () => {
    const late = await queueRun(db, organizationId, sleeping('1ms', { expected_within: '1ms' }))
    const inTime = await queueRun(db, organizationId, sleeping('1ms', { expected_within: '1h' }))
    // As if the workers had been away, and the run had ended before the relay looked.
    await db
      .system('runs')
      .where({ id: late })
      .update({ status: 'completed', started_at: db.system.fn.now(), ended_at: db.system.fn.now() })
    const worker = await startWorker(db)
    try {
      await until(async () => (await eventsOf(db, late)).length === 1, 'the event')
      await untilRun(db, inTime)
      assert.deepEqual(await eventsOf(db, inTime), [])
      const { late_at } = await db.system('runs').where({ id: inTime }).first()
      assert.equal(late_at, null)
    } finally {
      await worker.stop()
    }
  })
})

describe('many late runs of one organization', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('delay those of another by one page, and a page raises its events with one statement', async () => {
    const [large, small] = [await createOrganization(db), await createOrganization(db)]
    const lateRuns = async (organizationId: string, count: number) => {
      const id = await queueRun(db, organizationId, sleeping('1d', { expected_within: '1h' }))
      const { workflow_id, workflow_version, workflow_name } = await db.system('runs').where({ id }).first()
      const workflow = { id: workflow_id, version: workflow_version, name: workflow_name }
      const run = { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START } as const
      await db.tenant(organizationId, testActor, (tx) => createRuns(tx, Array(count - 1).fill(run)))
      const expected_by = new Date(Date.now() - (organizationId === large ? 3_600_000 : 1_000))
      await db.system('runs').where({ workflow_id }).update({ expected_by })
    }
    await lateRuns(large, 600)
    await lateRuns(small, 10)
    const queue = lateRunsQueue({ db, log: testLog })
    const statements = recordStatements()
    try {
      await queue.claim(db.system, 32)
      const inserts = statements.take().filter((statement) => /insert into events/.test(statement))
      assert.equal(inserts.length, 2, 'one for each organization')
    } finally {
      statements.stop()
    }
    const raised = async (organization_id: string) =>
      (await db.system('events').where({ organization_id, name: 'workflow.late' })).length
    assert.equal(await raised(small), 10)
    const first = await raised(large)
    assert.ok(first > 0 && first < 600, `${first} in the first page`)
    for (let page = 0; page < 6; page++) await queue.claim(db.system, 32)
    assert.deepEqual([await raised(large), await raised(small)], [600, 10])
  })
})
