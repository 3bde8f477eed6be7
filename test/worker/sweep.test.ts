import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Client } from '@temporalio/client'
import { Counter, Gauge, Registry } from 'prom-client'
import { createLogger } from '../../db/process/log.ts'
import { takeSweepLease } from '../../db/queue/sweep-state.ts'
import { checkRuns } from '../../worker/sweep/runs.ts'
import { Sweep } from '../../worker/sweep.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { call } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, testLog, untilRun } from '../support/worker.ts'

/** No row is idle for this long: only closed executions are found. */
const NEVER = '1 day'

describe('a node that is tried again by its retry', () => {
  const suite = withWorker({
    http: async () => {
      throw new NodeError('connection_refused', 'Nobody there.', { retryable: true })
    },
  })

  it('is not stuck, whatever the number of its attempts', async () => {
    const retry = { max_attempts: 100, initial_interval: '20ms', backoff: 1.2, max_interval: '2s' }
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [call('call', { retry })] })
    const node = () => suite.db.system('run_nodes').where({ run_id: id }).first('attempt')
    await until(async () => (await node())?.attempt >= 7)
    await new Sweep({
      db: suite.db,
      client: suite.worker.client,
      taskQueue: suite.worker.taskQueue,
      log: testLog,
    }).once('0 seconds')
    const { stuck_reason } = await suite.db.system('runs').where({ id }).first('stuck_reason')
    assert.equal(stuck_reason, null)
    await suite.worker.client.workflow.getHandle(`run:${id}`).terminate()
  })
})

describe('the sweep', () => {
  const suite = withWorker()
  const waiting = async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [{ id: 'long', type: 'delay', config: { for: '1h' } }],
    })
    await untilRun(suite.db, id, ['running'])
    await new Promise((resolve) => setTimeout(resolve, 200))
    return id
  }
  const status = async (id: string) => (await suite.db.system('runs').where({ id }).first('status')).status
  const sweep = () =>
    new Sweep({ db: suite.db, client: suite.worker.client, taskQueue: suite.worker.taskQueue, log: testLog })
  /** Temporal's visibility lags behind, by seconds on a busy machine. */
  const sweepUntilEnded = (id: string) =>
    until(async () => {
      await sweep().once(NEVER)
      return (await status(id)) !== 'running'
    })
  const stateOf = () => suite.db.system('sweep_state').first('watermark', 'holder')

  it('counts and logs each look of the glance that fails, as it does its stages', async () => {
    const { db, worker } = suite
    const registers = [new Registry()]
    const metrics = {
      temporalLosses: new Counter({ name: 'losses', help: 'test', registers }),
      lastSweep: new Gauge({ name: 'last', help: 'test', registers }),
      sweepFailures: new Counter({
        name: 'failures',
        help: 'test',
        registers,
        labelNames: ['stage'] as const,
      }),
    }
    const lines: string[] = []
    const log = createLogger('worker', 'error', { write: (line: string) => void lines.push(line) })
    // Temporal refuses each request about workflows.
    const client = new Client({ connection: worker.connection, namespace: 'missing' })
    const one = new Sweep({ db, client, taskQueue: worker.taskQueue, log, metrics })
    await one.glance()
    await one.close()
    const failed = async () =>
      (await metrics.sweepFailures.get()).values.map(({ labels, value }) => [labels.stage, value])
    const stages = ['stopped workflows', 'signs of a loss']
    assert.deepEqual(
      await failed(),
      stages.map((stage) => [stage, 1]),
    )
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)).map(({ stage, msg }) => [stage, msg]),
      stages.map((stage) => [stage, 'a stage of the sweep failed']),
    )
  })

  it('finds workflows that closed since the watermark, and moves it', async () => {
    const id = await waiting()
    const open = await waiting()
    await suite.worker.client.workflow.getHandle(`run:${id}`).terminate()
    const begun = Date.now()
    await sweepUntilEnded(id)
    assert.deepEqual([await status(id), await status(open)], ['terminated', 'running'])
    const { watermark, holder } = await stateOf()
    // It overlaps by a constant, for visibility lags behind.
    assert.ok(begun - watermark.getTime() < 60_000)
    assert.equal(holder, null)
    await suite.worker.client.workflow.getHandle(`run:${open}`).terminate()
  })

  it('catches up from an old watermark, one window after the other', async () => {
    const id = await waiting()
    await suite.worker.client.workflow.getHandle(`run:${id}`).terminate()
    await suite.db.system('sweep_state').update({ watermark: new Date(Date.now() - 3 * 3_600_000) })
    await sweepUntilEnded(id)
    assert.equal(await status(id), 'terminated')
  })

  it('does nothing while another worker is elected, until its lease ends', async () => {
    const id = await waiting()
    await suite.worker.client.workflow.getHandle(`run:${id}`).terminate()
    await takeSweepLease(suite.db.system, randomUUID())
    await sweep().once('0 seconds')
    assert.equal(await status(id), 'running')
    await suite.db.system('sweep_state').update({ lease_until: new Date(Date.now() - 1_000) })
    await sweep().once('0 seconds')
    assert.equal(await status(id), 'terminated')
  })

  it('goes on with other rows when Temporal fails for one', async () => {
    const [broken, fine] = [await waiting(), await waiting()]
    const { client } = suite.worker
    for (const id of [broken, fine]) await client.workflow.getHandle(`run:${id}`).terminate()
    const failing = Object.create(client, {
      workflow: {
        value: Object.create(client.workflow, {
          getHandle: {
            value(id: string) {
              if (id === `run:${broken}`) throw new Error('unavailable')
              return client.workflow.getHandle(id)
            },
          },
        }),
      },
    }) as Client
    const long = new Date(Date.now() - 3_600_000)
    await suite.db.system('runs').where({ id: broken }).update({ stuck_reason: 'kept', updated_at: long })
    await new Sweep({ db: suite.db, client: failing, taskQueue: suite.worker.taskQueue, log: testLog }).once(
      '0 seconds',
    )
    assert.deepEqual([await status(broken), await status(fine)], ['running', 'terminated'])
    const row = await suite.db.system('runs').where({ id: broken }).first('stuck_reason', 'updated_at')
    assert.equal(row.stuck_reason, 'kept')
    assert.ok(row.updated_at > long, 'others are looked at before it is again')
  })

  it('ends a run of which Temporal had an earlier state more often than it is resumed, and its workflow', async () => {
    const id = await waiting()
    const runs = () => suite.db.system('runs').where({ id })
    // A longer history than Temporal has.
    await runs().update({ history_length: 10_000, resumes: 10 })
    await sweep().once('0 seconds')
    const { status, error, ended_at } = await runs().first()
    assert.deepEqual([status, error?.code, ended_at !== null], ['lost', 'lost', true])
    assert.match(error.message, /earlier state .* 10 times/)
    assert.equal(
      (await suite.db.system('events').where({ name: 'workflow.failed', subject_id: id })).length,
      1,
    )
    const workflow = suite.worker.client.workflow.getHandle(`run:${id}`)
    await until(async () => (await workflow.describe()).status.name !== 'RUNNING')
    assert.equal((await workflow.describe()).status.name, 'TERMINATED')
  })

  it('never says of a run that recorded its end that it is lost', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [{ id: 'a', type: 'set_fields', config: { fields: { value: 'a' } } }],
    })
    await untilRun(suite.db, id)
    const { temporal_run_id } = await suite.db.system('runs').where({ id }).first('temporal_run_id')
    // The row as listed before its end, with a run that Temporal does not know.
    const row = {
      organization_id: suite.organizationId,
      id,
      kind: 'run' as const,
      temporal_run_id,
      calls: 0,
      attempts: 0,
      overdue: false,
      history_length: null,
      told: false,
      unheeded: false,
    }
    const unknown = Object.create(suite.worker.client, {
      workflow: { value: { getHandle: () => suite.worker.client.workflow.getHandle(`run:${randomUUID()}`) } },
    }) as Client
    await checkRuns({ db: suite.db, client: unknown, log: testLog }, [row])
    assert.equal(await status(id), 'completed')
  })
})
