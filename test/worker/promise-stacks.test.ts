import assert from 'node:assert/strict'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('workflow threads', () => {
  let db: TestDatabase
  let worker: TestWorker
  before(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => worker.stop())
  after(() => db?.drop())

  /** The answer of the query `__stack_trace` to a run that waits. */
  async function stackTrace(): Promise<string> {
    const wait = { id: 'wait', type: 'delay', config: { for: '1h' } }
    const id = await queueRun(db, await createOrganization(db), { nodes: [wait] })
    await untilRun(db, id, ['running'])
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    return handle.query<string>('__stack_trace').finally(() => handle.terminate())
  }

  it('record no stacks of promises', async () => {
    worker = await startWorker(db)
    await assert.rejects(stackTrace(), /stack traces are not enabled/)
  })

  it('record stacks of promises if the setting asks for them', async () => {
    worker = await startWorker(db, { stackTraces: true })
    assert.match(await stackTrace(), /at loop \(.*run\.ts/)
  })

  it('terminate no activation that takes less than a minute', async () => {
    worker = await startWorker(db)
    const { options } = worker.workers[0]!
    assert.equal(options.isolateExecutionTimeoutMs, 60_000)
  })
})
