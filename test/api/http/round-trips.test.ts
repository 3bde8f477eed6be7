import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import type { Knex } from 'knex'
import { startApi, type TestApi } from '../../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

const REQUESTS = 200

describe('authentication, limits and tenancy', () => {
  let db: TestDatabase
  let api: TestApi
  /** Transactions of tenants: BEGIN, settings, statements and COMMIT share round trips. */
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

  /** The statements outside of tenant transactions, while `request` is sent many times. */
  async function statementsOutside(request: () => Promise<{ status: number }>, status: number) {
    for (let i = 0; i < 10; i++) await request()
    const sent: string[] = []
    const client = clientOf(db.system)
    const note = ({ sql }: { sql: string }) => sent.push(sql)
    client.on('query', note)
    transactions = 0
    for (let i = 0; i < REQUESTS; i++) assert.equal((await request()).status, status)
    client.off('query', note)
    assert.equal(transactions, REQUESTS)
    return sent
  }
  const isOfKeys = (sql: string) => /\bapi_keys\b/.test(sql)
  const create = () => api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })

  it('cost a read no round trip: its key is confirmed in its transaction', async () => {
    const { body } = await create()
    const get = () => api.request('GET', `/v1/objects/contacts/${body.id}`)
    const sent = await statementsOutside(get, 200)
    const [lookups, limits] = [sent.filter(isOfKeys), sent.filter((sql) => !isOfKeys(sql))]
    // The use of the key is recorded once a minute.
    assert.ok(lookups.length <= 3, lookups.join('\n'))
    // The limits of the organization and of the key take a reserve now and then.
    assert.ok(
      limits.length <= REQUESTS / 5,
      `${limits.length} statements for the limits of ${REQUESTS} requests`,
    )
  })

  it('cost a write one round trip: its key is looked up before', async () => {
    const sent = await statementsOutside(create, 201)
    assert.equal(sent.filter((sql) => isOfKeys(sql) && !/^update/.test(sql)).length, REQUESTS)
  })
})

/** Knex's client, which emits the statements of a pool. */
const clientOf = (system: Knex): EventEmitter =>
  (system('runs') as unknown as { client: EventEmitter }).client
