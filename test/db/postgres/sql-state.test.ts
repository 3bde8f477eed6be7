import assert from 'node:assert/strict'
import { isTransient } from '../../../activities/faults.ts'
import { connect, type Database, pingLogins } from '../../../db/postgres/connect.ts'
import { isDatabaseUnavailable } from '../../../db/postgres/sql-state.ts'
import { createTestDatabase, refusedUrl, type TestDatabase } from '../../support/database.ts'

describe('a login that PostgreSQL refuses', () => {
  let db: TestDatabase
  let refused: Database
  before(async () => {
    db = await createTestDatabase()
    refused = connect({ url: refusedUrl(db.url), systemUrl: db.url })
  })
  after(async () => {
    await refused?.close()
    await db?.drop()
  })

  it('is an outage, which fails no run: its password may just have been changed', async () => {
    const error = await pingLogins(refused).catch((thrown: unknown) => thrown)
    assert.match(String(error), /password authentication failed/)
    assert.ok(isDatabaseUnavailable(error))
    assert.ok(isTransient(error))
  })
})
