import assert from 'node:assert/strict'
import { requireSessions } from '../../../db/postgres/sessions.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { hasPgBouncer, startPgBouncer } from '../../support/pgbouncer.ts'
import { startProcess } from '../../support/process.ts'

describe('the sessions of a database', () => {
  let db: TestDatabase
  const stops: (() => Promise<void>)[] = []
  before(async () => {
    db = await createTestDatabase()
  })
  afterEach(() => Promise.all(stops.splice(0).map((stop) => stop())))
  after(() => db?.drop())

  it('are its own without a pooler', async () => {
    await requireSessions({ url: db.url })
    await requireSessions({ url: db.url, systemUrl: db.url })
  })

  describe('behind PgBouncer', () => {
    before(function () {
      if (hasPgBouncer()) return
      process.stdout.write('      skipped: PgBouncer is not installed (apt-get install pgbouncer)\n')
      this.skip()
    })
    const through = async (mode: 'session' | 'transaction') => {
      const bouncer = await startPgBouncer(db.url, mode)
      stops.push(bouncer.stop)
      return bouncer.url
    }

    it('are refused in transaction mode, by each process in one line', async () => {
      const databaseUrl = await through('transaction')
      for (const name of ['api', 'worker'] as const)
        await assert.rejects(
          startProcess(name, { databaseUrl }),
          ({ message }: Error) =>
            /^the \w+ did not start: agx \w+: DATABASE_URL leads to a pooler in transaction mode.+\n$/.test(
              message,
            ) || assert.fail(message),
        )
    })

    it('are kept in session mode, and refused where only the system login has none', async () => {
      const url = await through('session')
      await requireSessions({ url })
      const systemUrl = await through('transaction')
      await assert.rejects(requireSessions({ url, systemUrl }), /^ConfigError: DATABASE_SYSTEM_URL leads/)
    })
  })
})
