import { createOrganization, createTestDatabase, type TestDatabase } from './database.ts'
import { startWorker, type TestWorker } from './worker.ts'

export interface WorkerSuite {
  db: TestDatabase
  worker: TestWorker
  organizationId: string
}

/** For a `describe`: a database with an organization, and a worker on it. Its members are set once tests run. */
export function withWorker(effects?: Parameters<typeof startWorker>[1]): WorkerSuite {
  const suite: Partial<WorkerSuite> = {}
  before(async () => {
    suite.db = await createTestDatabase()
    suite.organizationId = await createOrganization(suite.db)
    suite.worker = await startWorker(suite.db, effects)
  })
  after(async () => {
    await suite.worker?.stop()
    await suite.db?.drop()
  })
  return suite as WorkerSuite
}
