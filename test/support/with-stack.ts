import { connect, type Database } from '../../db/postgres/connect.ts'
import { type Caller, caller } from './caller.ts'
import { startStack, type TestStack } from './stack.ts'

export interface StackSuite {
  stack: TestStack
  /** The database of the stack. */
  db: Database
  /** Requests to /v1 by the key with every scope. */
  v1: Caller
}

/** For a `describe`: processes on the suite's servers, of which tests kill some. Its members are set once tests run. */
export function withStack(): StackSuite {
  const suite: Partial<StackSuite> = {}
  before(async () => {
    const stack = await startStack({ onSuite: true })
    const v1 = caller(`${stack.apiUrl}/v1`, { authorization: `Bearer ${stack.key}` })
    Object.assign(suite, { stack, v1, db: connect({ url: stack.databaseUrl }) })
  })
  after(async () => {
    await suite.db?.close()
    await suite.stack?.stop()
  })
  return suite as StackSuite
}
