import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { sendSignal } from '../../db/runs/signals.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { startOwnTemporal } from '../support/own-temporal.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** Fewer than ten: each is a workflow, and only the order of magnitude of their number matters. */
const RUNS = 5

describe('a database that adopts an empty Temporal', () => {
  let db: TestDatabase
  let empty: Awaited<ReturnType<typeof startOwnTemporal>>
  let connection: Connection
  const workers: TestProcess[] = []
  const taskQueue = `test-${randomUUID()}`
  before(async () => {
    db = await createTestDatabase()
    empty = await startOwnTemporal()
    connection = await Connection.connect({ address: empty.address })
  })
  after(async () => {
    for (const { child } of workers) child.kill('SIGKILL')
    await connection?.close()
    await empty?.stop()
    await db?.drop()
  })

  async function start(env: Record<string, string> = {}): Promise<TestProcess> {
    const worker = await startProcess('worker', {
      databaseUrl: db.url,
      env: { TEMPORAL_TASK_QUEUE: taskQueue, ...env },
    })
    workers.push(worker)
    return worker
  }

  it('has a workflow of every waiting run again, which then takes its signal', async () => {
    const organizationId = await createOrganization(db)
    const first = await start()
    const ids = await Promise.all(
      Array.from({ length: RUNS }, () =>
        queueRun(db, organizationId, {
          nodes: [{ id: 'hold', type: 'wait_for_signal', config: { name: 'go' } }],
        }),
      ),
    )
    for (const id of ids)
      await until(async () => {
        const { status, sleeps_until } = await db.system('runs').where({ id }).first()
        return (status === 'running' && sleeps_until !== null) || undefined
      }, 'a sleeping run')
    // As those that the sweep has checked, and that it would not look up again for hours.
    await db.system('runs').whereIn('id', ids).update({ checked: true })
    assert.equal((await first.stop()).code, 0)

    await start({ TEMPORAL_ADDRESS: empty.address, TEMPORAL_ADOPT: 'true' })
    const { workflow } = new Client({ connection })
    for (const id of ids)
      await until(async () => {
        const found = await workflow
          .getHandle(`run:${id}`)
          .describe()
          .catch(() => undefined)
        return found?.status.name === 'RUNNING' || undefined
      }, `the workflow of ${id}`)
    for (const id of ids)
      await db.tenant(organizationId, testActor, (tx) => sendSignal(tx, id, { name: 'go', payload: null }))
    for (const id of ids) assert.equal((await untilRun(db, id)).status, 'completed')
  })
})
