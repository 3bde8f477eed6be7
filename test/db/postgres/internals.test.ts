import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Knex } from 'knex'
import { requireInternals } from '../../../db/postgres/connect.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

/** connect.ts uses them without types: an update of knex or pg that changes them must fail here. */
describe('what we use of the internals of knex and pg', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db.drop())

  it('is of versions that package.json pins exactly', () => {
    const { dependencies } = JSON.parse(
      readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
    )
    for (const name of ['knex', 'pg']) assert.match(dependencies[name], /^\d+\.\d+\.\d+$/, name)
  })

  it('stops the start if Knex has something else', () => {
    const pool = { numUsed() {}, numFree() {} }
    const other = { client: { acquireConnection() {}, pool } } as unknown as Knex
    assert.throws(() => requireInternals(other), /has no releaseConnection, numPendingAcquires: /)
  })

  it('counts the connections of a pool', async () => {
    await db.system.transaction(async (trx) => {
      await trx.raw('select 1')
      assert.deepEqual(db.poolUse().system, { used: 1, idle: 0, waiting: 0 })
    })
    assert.deepEqual(db.poolUse().system, { used: 0, idle: 1, waiting: 0 })
  })
})
