import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { connect } from '../../db/postgres/connect.ts'
import { VERSION } from '../../db/process/build.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { createTestDatabase, refusedUrl, type TestDatabase } from '../support/database.ts'
import { breakDatabase, startOwnTemporal } from '../support/own-temporal.ts'
import { until } from '../support/until.ts'

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
  afterEach(async () => {
    Date.now = now
    await api.close()
  })
  after(async () => {
    if (address === undefined) delete process.env.TEMPORAL_ADDRESS
    else process.env.TEMPORAL_ADDRESS = address
    await db.drop()
  })
  /** Makes the results too old that are kept for two seconds. */
  const passTime = () => {
    Date.now = () => now() + 2_100
  }
  const now = Date.now
  const ready = () => api.request('GET', '/readyz', { key: null })

  it('are open to everyone, with a request id', async () => {
    const { status, headers, body } = await api.request('GET', '/healthz', { key: null })
    assert.deepEqual([status, body], [200, { status: 'alive', version: VERSION }])
    assert.ok(headers.get('x-request-id'))
  })

  it('report ready if the database is migrated and Temporal answers', async () => {
    process.env.TEMPORAL_ADDRESS = process.env.TEST_TEMPORAL_ADDRESS
    assert.equal((await ready()).status, 200)
  })

  it('are ready and name Temporal while it is away, for work is accepted all the same', async () => {
    process.env.TEMPORAL_ADDRESS = '127.0.0.1:1'
    const { status, body } = await ready()
    assert.equal(status, 200)
    assert.deepEqual(body, {
      status: 'degraded',
      checks: { database: 'ok', migrations: 'ok', temporal: 'failed' },
    })
  })

  it('name a Temporal that accepts connections but cannot use its database', async () => {
    const own = await startOwnTemporal()
    try {
      process.env.TEMPORAL_ADDRESS = own.address
      assert.equal((await ready()).body.status, 'ready')
      breakDatabase(own)
      passTime()
      const { status, body } = await until(async () => {
        const answer = await ready()
        return answer.body.status === 'ready' ? undefined : answer
      }, 'the failure')
      assert.deepEqual([status, body.status, body.checks.temporal], [200, 'degraded', 'failed'])
    } finally {
      await own.stop()
    }
  })

  it('do not wait for a Temporal that hangs, once its absence is known', async () => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => sockets.push(socket)).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    process.env.TEMPORAL_ADDRESS = `127.0.0.1:${(silent.address() as AddressInfo).port}`
    let failed = 0
    const other = await startApi(
      db,
      {},
      {
        write(line) {
          if (line.includes('a readiness check failed')) failed++
        },
      },
    )
    const asked = () => other.request('GET', '/readyz', { key: null })
    await asked()
    assert.equal(failed, 1)
    passTime()
    assert.equal((await asked()).body.status, 'degraded')
    assert.equal(failed, 1, 'the next check has not ended')
    await until(async () => failed === 2, 'its end')
    await other.close()
    for (const socket of sockets) socket.destroy()
    silent.close()
  })

  it("refuse readiness where organizations' transactions fail, as requests then do", async () => {
    process.env.TEMPORAL_ADDRESS = process.env.TEST_TEMPORAL_ADDRESS
    const halfway = connect({ url: refusedUrl(db.url), systemUrl: db.url })
    const given = { ...db }
    const other = await startApi(given)
    try {
      // Only now: its key is created by a transaction of its organization.
      given.tenant = halfway.tenant
      assert.equal((await other.request('GET', '/v1/objects/contacts')).status, 503)
      const { status, body } = await other.request('GET', '/readyz', { key: null })
      assert.deepEqual([status, body.status, body.checks.database], [503, 'not_ready', 'failed'])
    } finally {
      await other.close()
      await halfway.close()
    }
  })

  it('report a pending migration', async () => {
    process.env.TEMPORAL_ADDRESS = process.env.TEST_TEMPORAL_ADDRESS
    const other = await createTestDatabase()
    const behind = await startApi(other)
    await other.system.transaction(async (trx) => {
      await trx.raw('reset role')
      await trx.raw("delete from agx_migrations where name = '0001_access'")
    })
    const { status, body } = await behind.request('GET', '/readyz', { key: null })
    assert.deepEqual([status, body.status, body.checks.migrations], [503, 'not_ready', 'failed'])
    await behind.close()
    await other.drop()
  })
})
