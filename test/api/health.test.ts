import assert from 'node:assert/strict'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

describe('/healthz and /readyz', () => {
  const address = process.env.TEMPORAL_ADDRESS
  let db: TestDatabase
  let api: TestApi
  before(async () => {
    db = await createTestDatabase()
  })
  beforeEach(async () => {
    api = await startApi(db)
  })
  afterEach(() => api.close())
  after(async () => {
    if (address === undefined) delete process.env.TEMPORAL_ADDRESS
    else process.env.TEMPORAL_ADDRESS = address
    await db.drop()
  })
  const ready = () => api.request('GET', '/readyz', { key: null })

  it('are open to everyone, with a request id', async () => {
    const { status, headers, body } = await api.request('GET', '/healthz', { key: null })
    assert.deepEqual([status, body], [200, { status: 'alive' }])
    assert.ok(headers.get('x-request-id'))
  })

  it('report ready if the database is migrated and Temporal answers', async () => {
    process.env.TEMPORAL_ADDRESS = process.env.TEST_TEMPORAL_ADDRESS
    assert.equal((await ready()).status, 200)
  })

  it('report which check failed', async () => {
    process.env.TEMPORAL_ADDRESS = '127.0.0.1:1'
    const away = await ready()
    assert.equal(away.status, 503)
    assert.deepEqual(away.body.checks, { database: 'ok', migrations: 'ok', temporal: 'failed' })
  })

  it('report a pending migration', async () => {
    process.env.TEMPORAL_ADDRESS = process.env.TEST_TEMPORAL_ADDRESS
    const other = await createTestDatabase()
    const behind = await startApi(other)
    await other.system.transaction(async (trx) => {
      await trx.raw('reset role')
      await trx.raw("delete from agx_migrations where name = '0001_foundation'")
    })
    const { body } = await behind.request('GET', '/readyz', { key: null })
    assert.equal(body.checks.migrations, 'failed')
    await behind.close()
    await other.drop()
  })
})
