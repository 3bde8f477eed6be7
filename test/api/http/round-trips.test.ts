import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import type { Knex } from 'knex'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const REQUESTS = 200

describe('authentication, limits and tenancy', () => {
  let db: TestDatabase
  let api: TestApi
  /** Transactions of tenants: BEGIN, settings, statements and COMMIT travel together. */
  let transactions = 0
  before(async () => {
    db = await createTestDatabase()
    const tenant: TestDatabase['tenant'] = (...parameters) => {
      transactions++
      return db.tenant(...parameters)
    }
    api = await startApi({ ...db, tenant })
  })
  after(async () => {
    await api?.close()
    await db?.drop()
  })

  it('cost one round trip more than the statement of the request', async () => {
    const { body } = await api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    const get = () => api.request('GET', `/v1/objects/contacts/${body.id}`)
    for (let i = 0; i < 10; i++) await get()

    const sent: string[] = []
    const client = clientOf(db.system)
    client.on('query', ({ sql }: { sql: string }) => sent.push(sql))
    transactions = 0
    for (let i = 0; i < REQUESTS; i++) assert.equal((await get()).status, 200)
    assert.equal(transactions, REQUESTS)
    const outside = sent.filter((sql) => !/\bcontacts\b/.test(sql))
    const lookups = outside.filter((sql) => /\bfrom api_keys\b|\bapi_keys\b/.test(sql))
    assert.equal(lookups.length, REQUESTS, 'each request looks its key up')
    // The limits take a reserve now and then, that of the organization and that of the key.
    const limits = outside.length - lookups.length
    assert.ok(limits <= REQUESTS / 5, `${limits} statements for the limits of ${REQUESTS} requests`)
  })
})

/** Knex's client, which emits the statements of a pool. */
const clientOf = (system: Knex): EventEmitter =>
  (system('runs') as unknown as { client: EventEmitter }).client
