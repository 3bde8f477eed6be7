import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { withWorkflowThreads } from '../../worker/workflow-threads.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('workflow threads', () => {
  let db: TestDatabase
  let worker: TestWorker
  before(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => worker?.stop())
  after(() => db?.drop())

  /** The response of a waiting run to the query `__stack_trace`. */
  async function stackTrace(): Promise<string> {
    const wait = { id: 'wait', type: 'delay', config: { for: '1h' } }
    const id = await queueRun(db, await createOrganization(db), { nodes: [wait] })
    await untilRun(db, id, ['running'])
    const handle = worker.client.workflow.getHandle(`run:${id}`)
    return handle.query<string>('__stack_trace').finally(() => handle.terminate())
  }

  it('are those of a version of the SDK that package.json pins exactly', () => {
    const { dependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    assert.match(dependencies['@temporalio/worker'], /^\d+\.\d+\.\d+$/)
  })

  it('stop the start if the SDK has none', async () => {
    await assert.rejects(
      withWorkflowThreads({ stackTraces: false }, async () => []),
      /has no workflow threads/,
    )
  })

  it('record no stacks of promises', async () => {
    worker = await startWorker(db)
    await assert.rejects(stackTrace(), /stack traces are not enabled/)
  })

  it('record stacks of promises if the setting asks for them', async () => {
    worker = await startWorker(db, { stackTraces: true })
    assert.match(await stackTrace(), /at \w+ \(.*bundle\/run\.ts/)
  })
})
