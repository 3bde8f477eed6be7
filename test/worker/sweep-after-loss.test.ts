import assert from 'node:assert/strict'
import { Client, Connection } from '@temporalio/client'
import { markLost, readLostAt, readWitness } from '../../db/queue/witness.ts'
import { Sweep } from '../../worker/sweep.ts'
import { witnessId } from '../../worker/witness.ts'
import { copyRun } from '../support/copy-run.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, testLog, untilRun } from '../support/worker.ts'

/** More than three batches. */
const SLEEPERS = 3_500

describe('the sweep after a loss of Temporal', () => {
  const suite = withWorker()
  let connection: Connection | undefined
  let sweep: Sweep | undefined
  after(async () => {
    await sweep?.close()
    await connection?.close()
  })

  it('goes on without a pause until each sleeping run was looked up, and does its other work between', async () => {
    const { db, organizationId, worker } = suite
    const id = await queueRun(db, organizationId, {
      nodes: [{ id: 'long', type: 'delay', config: { for: '30d' } }],
    })
    await untilRun(db, id, ['running'])
    await until(async () => {
      const { sleeps_until } = await db.system('runs').where({ id }).first('sleeps_until')
      return sleeps_until !== null || undefined
    }, 'the run to sleep')
    // The relay starts no workflow of the resumed runs.
    await worker.stop()
    await db.asOwner((client) => copyRun(client, id, SLEEPERS))
    await db.system('runs').update({ checked: true })
    await markLost(db.system, worker.taskQueue)
    connection = await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
    const client = new Client({ connection })
    const { taskQueue } = worker
    // One batch in each sweep.
    sweep = new Sweep({ db, client, taskQueue, log: testLog, lostMs: 1 })
    const began = Date.now()
    sweep.start(await readLostAt(db.system), () => {})
    const lost = () =>
      db
        .system('runs')
        .where('updated_at', '<', db.system.raw('(select lost_at from sweep_state)'))
        .where({ status: 'running' })
        .count('* as count')
        .then(([row]) => Number(row!.count))
    await until(async () => (await lost()) === 0, 'each run to be looked up', 100)
    // Each sweep tells the witness a number; the timer alone begins one every 30 s.
    const { sequence } = await readWitness(db.system, taskQueue)
    const timed = 1 + (Date.now() - began) / 30_000
    assert.ok(sequence > Math.max(SLEEPERS / 1_000, timed), `${sequence} sweeps`)
    const rows = await db.system('runs').where({ status: 'queued' })
    assert.equal(rows.length, SLEEPERS)
    for (const workflow of [`run:${id}`, witnessId(taskQueue)])
      await client.workflow.getHandle(workflow).terminate()
  })
})
