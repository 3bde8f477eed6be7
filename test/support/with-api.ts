import { startApi, type TestApi } from './api.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

export interface ApiSuite {
  db: TestDatabase
  api: TestApi
}

/** For a `describe`: a database, and a running API over it. Its members are set once tests run. */
export function withApi(env?: Record<string, string>): ApiSuite {
  const suite: Partial<ApiSuite> = {}
  before(async () => {
    suite.db = await createTestDatabase()
    suite.api = await startApi(suite.db, env)
  })
  after(async () => {
    await suite.api?.close()
    await suite.db?.drop()
  })
  return suite as ApiSuite
}
