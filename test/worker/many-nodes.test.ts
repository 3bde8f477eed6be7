import { deepEqual, ok } from 'node:assert/strict'
import { catalogue } from '../../api/v1/catalogue.ts'
import { validateSpec } from '../../workflows/authoring/validate.ts'
import { SPEC } from '../../workflows/shared/limits.ts'
import { lightSpec } from '../bench/long-spec.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { historyOf, queueRun, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

describe('a workflow of as many nodes as there may be', () => {
  let db: TestDatabase
  let worker: TestWorker

  before(async () => {
    db = await createTestDatabase()
    worker = await startWorker(db)
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('runs to its end, with a short history', async () => {
    const organizationId = await createOrganization(db)
    const { result, definition } = validateSpec(lightSpec(SPEC.nodes), catalogue)
    deepEqual(result, { valid: true, errors: [], warnings: [] })
    const id = await queueRun(db, organizationId, definition!)
    const run = await untilRun(db, id)
    deepEqual([run.error, run.status, run.outputs], [null, 'completed', { sum: SPEC.nodes }])
    const events = await historyOf(worker.client, `run:${id}`)
    // Temporal warns from 10,240 events on.
    ok(events.length < 300, `${events.length} events`)
  })
})
