import assert from 'node:assert/strict'
import { connect, type Database } from '../../../db/postgres/connect.ts'
import { VERSION } from '../../../db/process/build.ts'
import { LogOutput } from '../../../db/process/log-output.ts'
import { createMetrics } from '../../../db/process/metrics.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { parseMetrics, sumOf } from '../../support/prometheus.ts'
import { startProxy, type TestProxy } from '../../support/proxy.ts'

describe('the metrics of the queues while PostgreSQL hangs', () => {
  let db: TestDatabase
  let proxy: TestProxy
  let behind: Database
  before(async () => {
    db = await createTestDatabase()
    proxy = await startProxy(db.url)
    behind = connect({ url: proxy.url })
  })
  after(async () => {
    proxy?.resume()
    await behind?.close()
    proxy?.close()
    await db?.drop()
  })

  const read = async () =>
    parseMetrics(await createMetrics({ db: behind, log: new LogOutput(1), queues: true }).text())

  it('are missing, which another metric says, and do not hold up the others', async () => {
    const before = await read()
    assert.equal(sumOf(before, 'agx_queues_readable'), 1)
    assert.ok(before.has('agx_queue_lag_seconds{queue="runs"}'))
    assert.ok(before.has('agx_runs_stuck'))
    assert.equal(before.get('agx_jobs_open{queue="bulk_jobs"}'), 0)
    assert.equal(before.get('agx_jobs_oldest_seconds{queue="bulk_jobs"}'), 0)
    proxy.hang()
    const during = await read()
    assert.equal(during.get('agx_queues_readable'), 0)
    const queues = [...during.keys()].filter((name) => /^agx_(?:queue_|jobs_|runs_(?:late|stuck))/.test(name))
    assert.deepEqual(queues, [])
    assert.ok(during.has(`agx_build_info{version="${VERSION}",commit="",node="${process.version}"}`))
  })
})
