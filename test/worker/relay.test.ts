import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Client } from '@temporalio/client'
import { v7 as uuidv7 } from 'uuid'
import { notify } from '../../db/postgres/notify.ts'
import { createLogger } from '../../db/process/log.ts'
import { bounded } from '../../worker/bounded.ts'
import { type Queue, Relay } from '../../worker/relay.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'
import { testLog } from '../support/worker.ts'

describe('a relay', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('that is closed claims no more, also while PostgreSQL hangs', async () => {
    const proxy = await startProxy(db.url)
    let claims = 0
    const queue: Queue<never> = {
      name: 'test',
      channel: 'agx_runs',
      async claim() {
        claims++
        return []
      },
      async start() {},
    }
    const relay = new Relay({
      db: { ...db, url: proxy.url },
      client: {} as Client,
      log: testLog,
      pollMs: 20,
      queues: [queue],
    })
    await relay.start()
    while (claims === 0) await pause(10)
    proxy.hang()
    const closed = relay.close()
    await pause(50)
    const before = claims
    // Several polls of the relay.
    await pause(200)
    proxy.resume()
    proxy.close()
    await closed
    assert.equal(claims, before)
  })
})

describe('the log of a relay', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('names the row whose work fails, such as a page of a long job', async () => {
    const lines: Record<string, unknown>[] = []
    const log = createLogger('worker', 'info', { write: (line) => void lines.push(JSON.parse(line)) })
    const row = { organization_id: uuidv7(), id: uuidv7(), name: 'Ada' }
    const rows = [row]
    const queue: Queue<typeof row> = {
      name: 'bulk jobs',
      channel: 'agx_bulk_jobs',
      claim: async () => rows.splice(0),
      async start() {
        throw new Error('the page fails')
      },
    }
    const relay = new Relay({ db, client: {} as Client, log, pollMs: 20, queues: [queue] })
    await relay.start()
    const failed = 'starting a workflow failed; it will be retried'
    const line = await until(() => lines.find(({ msg }) => msg === failed), 'the line')
    await relay.close()
    assert.deepEqual(
      [line.queue, line.organization_id, line.row_id],
      ['bulk jobs', row.organization_id, row.id],
    )
    assert.doesNotMatch(JSON.stringify(lines), /Ada/)
  })
})

describe('a queue with a least pause', () => {
  let db: TestDatabase
  before(async () => {
    db = await createTestDatabase()
  })
  after(() => db?.drop())

  it('is claimed from at most so often, however often it is woken', async () => {
    const claimedAt: number[] = []
    const queue: Queue<never> = {
      name: 'test',
      channel: 'agx_runs',
      leastPause: 200,
      async claim() {
        claimedAt.push(performance.now())
        return []
      },
      async start() {},
    }
    const relay = new Relay({ db, client: {} as Client, log: testLog, pollMs: 60_000, queues: [queue] })
    await relay.start()
    while (claimedAt.length < 4) {
      await notify(db.system, 'agx_runs')
      await pause(10)
    }
    await relay.close()
    const pauses = claimedAt.slice(1).map((time, i) => time - claimedAt[i]!)
    // Timers may be a millisecond early.
    assert.ok(Math.min(...pauses) >= 198, `${pauses}`)
  })
})

describe('bounded work', () => {
  it('has its result, or its error', async () => {
    assert.equal(await bounded(1_000, 'it', Promise.resolve(1)), 1)
    await assert.rejects(bounded(1_000, 'it', Promise.reject(new Error('no'))), { message: 'no' })
  })

  it('is given up after its time', async () => {
    await assert.rejects(bounded(20, 'it', new Promise(() => {})), { message: 'it took longer than 20 ms' })
  })
})
