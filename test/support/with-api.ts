import { startApi, type TestApi } from './api.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type App, signIn } from './session.ts'
import { startWorker, type TestWorker } from './worker.ts'

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

/** As `withApi`, and a session of an owner of the API's organization. */
export function withApp(env?: Record<string, string>): ApiSuite & { app: App } {
  const suite = withApi(env) as ApiSuite & { app: App }
  before(async () => {
    suite.app = await signIn(suite.db, suite.api)
  })
  return suite
}

/** As `withApi`, and a worker, which stops before the API. */
export function withApiAndWorker(env?: Record<string, string>): ApiSuite & { worker: TestWorker } {
  // Declared before the hook of `withApi`: hooks run in the order of declaration.
  after(() => suite.worker?.stop())
  const suite = withApi(env) as ApiSuite & { worker: TestWorker }
  before(async () => {
    suite.worker = await startWorker(suite.db, { secretsKey: suite.api.secretsKey })
  })
  return suite
}
