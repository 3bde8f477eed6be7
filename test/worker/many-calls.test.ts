import assert from 'node:assert/strict'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { OPEN_CALLS } from '../../workflows/shared/limits.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, each, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const ITEMS = 41
const CALLS = 50

describe('a run with more calls than Temporal lets a workflow wait for', () => {
  let db: TestDatabase
  let worker: TestWorker
  const made = new Map<string, number>()
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })

  before(async () => {
    db = await createTestDatabase()
    worker = await startWorker(db, {
      async http({ headers = {} }) {
        const key = headers['Idempotency-Key'] ?? ''
        made.set(key, (made.get(key) ?? 0) + 1)
        await released
        return httpResponse()
      },
    })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('makes some at a time, is paused and resumed, and makes each once', async () => {
    const organizationId = await createOrganization(db)
    const calls = Array.from({ length: CALLS }, (_, n) => call(`call${n}`))
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [each({ concurrency: 50, output: 1 }), ...calls],
        edges: calls.map((one) => edge('each', one.id, 'item')),
        inputs: { items: { type: 'array' } },
      },
      { items: Array.from({ length: ITEMS }, (_, n) => n) },
    )
    const inProgress = async () => {
      const rows = db.system('run_nodes').where({ run_id: id, status: 'running' }).whereNot({ path: '' })
      return Number((await rows.count())[0]!.count)
    }
    await until(async () => (await inProgress()) >= OPEN_CALLS, 'the limit')
    await db.tenant(organizationId, testActor, (tx) => pauseRun(tx, id))
    release()
    await untilRun(db, id, ['paused'])
    assert.ok((await inProgress()) <= OPEN_CALLS)
    await db.tenant(organizationId, testActor, (tx) => unpauseRun(tx, id))
    const run = await untilRun(db, id, undefined, 200)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.deepEqual([made.size, Math.max(...made.values())], [ITEMS * CALLS, 1])
  })
})
