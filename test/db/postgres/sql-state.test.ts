import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { v7 as uuid } from 'uuid'
import { isTransient } from '../../../activities/faults.ts'
import { SYSTEM } from '../../../db/model/actor.ts'
import { connect, type Database, pingLogins } from '../../../db/postgres/connect.ts'
import { isDatabaseUnavailable } from '../../../db/postgres/sql-state.ts'
import { createTestDatabase, refusedUrl, type TestDatabase } from '../../support/database.ts'
import { until } from '../../support/until.ts'

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

describe('the readiness of the login of organizations', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(async () => db?.drop())

  it('fails while no login is answered, and keeps one probe', async () => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => void sockets.push(socket.on('error', () => {}))).listen(
      0,
      '127.0.0.1',
    )
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const hanging = connect({
      url: `postgres://nobody@127.0.0.1:${port}/none`,
      systemUrl: db.url,
      maxWaitMs: 2_500,
    })
    try {
      const pings = [1, 2, 3].map(() => pingLogins(hanging))
      const outcomes = Promise.allSettled(pings)
      const { waiting } = hanging.poolUse().tenant
      const statuses = (await outcomes).map(({ status }) => status)
      assert.deepEqual([statuses, waiting <= 1], [['rejected', 'rejected', 'rejected'], true])
    } finally {
      for (const socket of sockets) socket.destroy()
      silent.close()
      await hanging.close()
    }
  })

  it('stays while others have all connections, and keeps one probe', async () => {
    const busy = connect({ url: db.url, poolSize: 2 })
    const release = new EventEmitter()
    const holders = [1, 2].map(() =>
      busy.tenant(uuid(), SYSTEM, async () => void (await once(release, 'held'))),
    )
    try {
      await until(async () => busy.poolUse().tenant.used === 2 || undefined, 'both connections')
      await Promise.all([1, 2, 3].map(() => pingLogins(busy)))
      assert.equal(busy.poolUse().tenant.waiting, 1)
    } finally {
      release.emit('held')
      await Promise.all(holders)
      await busy.close()
    }
  })
})
