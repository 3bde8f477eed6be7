import assert from 'node:assert/strict'
import { NativeConnection, type Worker } from '@temporalio/worker'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { buildOf, VERSION } from '../../db/process/build.ts'
import { freePort } from '../../worker/dev/postgres/server.ts'
import { type Health, serveHealth } from '../../worker/health.ts'
import { createTestDatabase, refusedUrl, type TestDatabase } from '../support/database.ts'
import { breakDatabase, mendDatabase, startOwnTemporal } from '../support/own-temporal.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker, testLog } from '../support/worker.ts'

describe('health of the worker process', () => {
  let db: TestDatabase
  let health: Health
  let connection: NativeConnection
  let worker: TestWorker
  let url: string
  const stopping = new AbortController()
  const ready = async (of = url) => {
    const response = await fetch(`${of}/readyz`)
    return {
      status: response.status,
      checks: ((await response.json()) as { checks: Record<string, string> }).checks,
    }
  }
  const serveOn = async (database: Database): Promise<[url: string, health: Health]> => {
    const port = await freePort()
    const served = await serveHealth({
      db: database,
      log: testLog,
      build: buildOf({}),
      namespace: 'default',
      host: '127.0.0.1',
      port,
      stopping: stopping.signal,
      metrics: async () => '',
      metricsToken: undefined,
    })
    return [`http://127.0.0.1:${port}`, served]
  }
  /** The members of a worker that `isPolling` reads. */
  const workerOf = (identity: string, state = 'RUNNING') => {
    const options = { namespace: 'default', taskQueue: worker.taskQueue, identity }
    return { options, getState: () => state } as unknown as Worker
  }

  before(async () => {
    db = await createTestDatabase()
    worker = await startWorker(db)
    connection = await NativeConnection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
    ;[url, health] = await serveOn(db)
  })
  after(async () => {
    await health?.close()
    await connection?.close()
    await worker?.stop()
    await db?.drop()
  })

  it('is alive but not ready without Temporal', async () => {
    const alive = await fetch(`${url}/healthz`)
    assert.deepEqual([alive.status, await alive.json()], [200, { status: 'alive', version: VERSION }])
    const { status, checks } = await ready()
    assert.equal(status, 503)
    assert.deepEqual(checks, { database: 'ok', migrations: 'ok', temporal: 'failed', pollers: 'failed' })
  })

  it("is not ready if organizations' transactions are refused, though those of the system are not", async () => {
    const halfway = connect({ url: refusedUrl(db.url), systemUrl: db.url })
    const [ofHalfway, other] = await serveOn(halfway)
    try {
      const { status, checks } = await ready(ofHalfway)
      assert.deepEqual([status, checks.database, checks.migrations], [503, 'failed', 'ok'])
    } finally {
      await other.close()
      await halfway.close()
    }
  })

  it('is ready as soon as its workers poll Temporal', async () => {
    const { identity } = worker.workers[0]!.options
    const looks = async (watched: Worker[]) => {
      health.watch({ connection, workers: watched })
      return ready()
    }
    await until(
      async () => (await looks(worker.workers)).status === 200,
      async () => (await looks(worker.workers)).checks,
    )
    assert.equal((await looks([workerOf(identity)])).status, 200)
    const silent = await looks([workerOf('somebody else')])
    assert.deepEqual([silent.status, silent.checks.temporal, silent.checks.pollers], [503, 'ok', 'failed'])
    assert.equal((await looks([workerOf(identity, 'DRAINING')])).status, 503)
  })

  it('is not ready while Temporal cannot use its database', async () => {
    const own = await startOwnTemporal()
    const through = await NativeConnection.connect({ address: own.address })
    const looks = async () => {
      health.watch({ connection: through, workers: [] })
      const { status, checks } = await ready()
      return [status, checks.temporal]
    }
    try {
      assert.deepEqual(await looks(), [200, 'ok'])
      breakDatabase(own)
      assert.deepEqual(await looks(), [503, 'failed'])
      await through.workflowService.getSystemInfo({})
      await through.workflowService.describeNamespace({ namespace: 'default' })
      mendDatabase(own)
      assert.deepEqual(await looks(), [200, 'ok'])
    } finally {
      health.watch(undefined)
      await through.close()
      await own.stop()
    }
  })
})
