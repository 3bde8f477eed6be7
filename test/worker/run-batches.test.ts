import assert from 'node:assert/strict'
import { advanceBatch, createBatch, getBatch, previewBatch, runBatches } from '../../db/runs/batches.ts'
import { createRetry, prepareRetryOf } from '../../db/runs/retry.ts'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { createWorkflow } from '../../db/workflows/workflows.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { startWorker } from '../support/worker.ts'
import { emptyVersion } from '../support/workflows.ts'

const RUNS = 90

describe('batches of runs', () => {
  let db: TestDatabase
  let organizationId: string
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
  })
  after(() => db?.drop())

  const tenant = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(organizationId, testActor, work)
  const progress = (id: string) => tenant((tx) => getBatch(tx, id))
  const untilIt = (id: string, isThere: (batch: Awaited<ReturnType<typeof progress>>) => boolean) =>
    until(
      async () => {
        const batch = await progress(id)
        return isThere(batch) && batch
      },
      () => progress(id),
    )
  const newWorkflow = () =>
    tenant((tx) =>
      createWorkflow(tx, { name: 'Nothing', description: null, ...emptyVersion({ type: 'manual' }) }),
    )
  const queue = (workflowId: string, count: number) =>
    tenant(async (tx) => {
      const workflow = { id: workflowId, version: 1, name: 'Nothing' }
      for (let n = 0; n < count; n++)
        await createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START })
    })

  it('retry each run once, although a worker is killed in the middle, with two others', async () => {
    const { id: workflow_id } = await newWorkflow()
    await queue(workflow_id, RUNS)
    await db
      .system('runs')
      .update({ status: 'failed', ended_at: new Date(), error: { code: 'x', message: 'x' } })
    const id = await tenant((tx) =>
      createBatch(tx, {
        action: 'retry',
        filter: { workflow_id, status: ['failed'] },
        options: { from_start: true, version: 'same' },
      }),
    )
    // Simulates a worker that is killed after its first page.
    const [claimed] = await runBatches.claim(db.system, 1)
    assert.equal(await tenant((tx) => advanceBatch(tx, claimed!, 50)), true)
    assert.equal((await progress(id)).done, 50)
    assert.deepEqual(await runBatches.claim(db.system, 1), [], 'it is leased')
    await db.system('run_batches').update({ lease_until: new Date(Date.now() - 1) })
    const workers = [await startWorker(db), await startWorker(db)]
    const batch = await untilIt(id, ({ ended_at }) => ended_at !== null)
    await Promise.all(workers.map((worker) => worker.stop()))
    assert.deepEqual([batch.total, batch.done, batch.refused], [RUNS, RUNS, 0])
    const retries = await db.system('runs').whereNotNull('retry_of').select('retry_of', 'id')
    assert.equal(retries.length, RUNS)
    assert.equal(new Set(retries.map(({ retry_of }) => retry_of)).size, RUNS)
    const items = await db.system('run_batch_items').where({ batch_id: id }).select('run_id', 'new_run_id')
    assert.deepEqual(
      new Map(items.map((item) => [item.run_id, item.new_run_id])),
      new Map(retries.map((run) => [run.retry_of, run.id])),
    )
  })

  it('retry the newest of a run and its failed retries, and refuse the others', async () => {
    const { id: workflow_id } = await newWorkflow()
    await queue(workflow_id, 2)
    const fail = () =>
      db
        .system('runs')
        .where({ workflow_id })
        .update({ status: 'failed', ended_at: new Date(), error: { code: 'x', message: 'x' } })
    await fail()
    const options = { from_start: true, version: 'same' as const }
    const [first, other] = await db.system('runs').where({ workflow_id }).orderBy('id').pluck('id')
    const again = await tenant(async (tx) => createRetry(tx, await prepareRetryOf(tx, first, options), 0))
    await fail()
    const id = await tenant((tx) =>
      createBatch(tx, { action: 'retry', filter: { workflow_id, status: ['failed'] }, options }),
    )
    const [claimed] = await runBatches.claim(db.system, 1)
    await tenant((tx) => advanceBatch(tx, claimed!, 50))
    const { done, refusals } = await progress(id)
    assert.equal(done, 2)
    assert.deepEqual(
      refusals.map(({ run_id, error }) => [run_id, error.message]),
      [[first, `run ${again}, a later retry of the same run, is in the batch`]],
    )
    const retried = await db.system('run_batch_items').where({ batch_id: id, status: 'done' }).pluck('run_id')
    assert.deepEqual(retried.sort(), [again, other].sort())
    await db
      .system('runs')
      .where({ workflow_id, status: 'queued' })
      .update({ status: 'failed', ended_at: new Date() })
  })

  it('cancel, and say which runs could not be', async () => {
    const { id: workflow_id } = await newWorkflow()
    await queue(workflow_id, 3)
    const filter = { workflow_id, status: ['queued'] as const }
    const options = { version: 'same' as const }
    const id = await tenant((tx) => createBatch(tx, { action: 'cancel', filter, options }))
    const again = await tenant((tx) => createBatch(tx, { action: 'retry', filter, options }))
    const worker = await startWorker(db)
    const { done } = await untilIt(id, ({ ended_at }) => ended_at !== null)
    const refused = await untilIt(again, ({ ended_at }) => ended_at !== null)
    await worker.stop()
    assert.equal(done, 3)
    assert.equal(refused.done + refused.refused, 3)
  })

  it('of any size are listed in pages, of the runs that there were, and then made', async () => {
    const { id: workflow_id } = await newWorkflow()
    await queue(workflow_id, 5)
    const filter = { workflow_id, status: ['queued'] as const, from: new Date(Date.now() - 3_600_000) }
    const request = { action: 'cancel', filter, options: { version: 'same' } } as const
    assert.equal((await tenant((tx) => previewBatch(tx, request))).count, 5)
    const id = await tenant((tx) => createBatch(tx, request, 2))
    await queue(workflow_id, 1)
    const shown = async () => {
      const { total, listing, done } = await progress(id)
      return [total, listing, done]
    }
    assert.deepEqual(await shown(), [2, true, 0])
    const [claimed] = await runBatches.claim(db.system, 1)
    const advance = () => tenant((tx) => advanceBatch(tx, claimed!, 50, 2))
    await advance()
    assert.deepEqual(await shown(), [4, true, 0])
    await advance()
    assert.deepEqual(await shown(), [5, false, 0])
    assert.equal(await advance(), false)
    assert.deepEqual(await shown(), [5, false, 5])
    const left = await db.system('runs').where({ workflow_id, status: 'queued' })
    assert.equal(left.length, 1, 'the run that was queued later')
  })

  it('retry only as many runs as may be queued, and the others later', async () => {
    const other = await createOrganization(db, { limits: { max_queued: 2 } })
    const within = <T>(work: Parameters<typeof db.tenant<T>>[2]) => db.tenant(other, testActor, work)
    const { id: workflow_id } = await within((tx) =>
      createWorkflow(tx, { name: 'Nothing', description: null, ...emptyVersion({ type: 'manual' }) }),
    )
    await within(async (tx) => {
      const workflow = { id: workflow_id, version: 1, name: 'Nothing' }
      for (let n = 0; n < 3; n++)
        await createRun(tx, { workflow, trigger: { type: 'api' }, inputs: {}, chain: CHAIN_START })
    })
    const runs = () => db.system('runs').where({ workflow_id })
    const error = { code: 'x', message: 'x' }
    await runs().update({ status: 'failed', ended_at: new Date(), error })
    const filter = { workflow_id, status: ['failed'] as const }
    const options = { from_start: true, version: 'same' as const }
    const id = await within((tx) => createBatch(tx, { action: 'retry', filter, options }))
    const [claimed] = await runBatches.claim(db.system, 1)
    const advance = async () => {
      assert.equal(await within((tx) => advanceBatch(tx, claimed!, 50)), false)
      const { done, ended_at } = await within((tx) => getBatch(tx, id))
      return [done, ended_at !== null]
    }
    assert.deepEqual(await advance(), [2, false])
    assert.deepEqual(await advance(), [2, false])
    await runs().where({ status: 'queued' }).update({ status: 'cancelled', ended_at: new Date() })
    assert.deepEqual(await advance(), [3, true])
  })

  it('without any run end at once', async () => {
    const filter = { workflow_id: organizationId, status: ['failed'] as const }
    const id = await tenant((tx) =>
      createBatch(tx, { action: 'retry', filter, options: { version: 'same' } }),
    )
    const { total, ended_at } = await progress(id)
    assert.deepEqual([total, ended_at === null], [0, false])
  })
})
