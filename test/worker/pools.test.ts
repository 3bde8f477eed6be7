import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setPools } from '../../db/access/pools.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { seeRelay } from '../../db/runs/relays.ts'
import { Sweep } from '../../worker/sweep.ts'
import { testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, edge } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { type WorkerSuite, withWorker } from '../support/with-worker.ts'
import { queueRun, startPoolWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

describe('worker pools', () => {
  /** The number of calls, by any worker. */
  let calls = 0
  const answer = (from: string) =>
    (async () => {
      calls += 1
      return httpResponse({ body: { from } })
    }) as never
  const suite = withWorker({ http: answer('outside') })
  const { started, allow, startPool, outputs } = poolsOf(suite, answer)
  const sweep = () => {
    const { client, taskQueue } = suite.worker
    return new Sweep({ db: suite.db, client, taskQueue, log: testLog }).once('0 seconds')
  }
  const stuckReason = async (id: string): Promise<string | null> =>
    (await suite.db.system('runs').where({ id }).first('stuck_reason')).stuck_reason
  const untilStuck = (id: string) =>
    until(async () => {
      await sweep()
      return stuckReason(id)
    })

  it('make the calls of the nodes that name them, or whose workflow does', async () => {
    await allow('dmz', 'lab')
    await startPool('dmz')
    await startPool('lab')
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [call('a'), call('b', { pool: 'lab' }), call('c', { pool: 'default' })],
      edges: [edge('a', 'b'), edge('b', 'c')],
      settings: { pool: 'dmz' },
      outputs: outputs('a', 'b', 'c'),
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { a: 'dmz', b: 'lab', c: 'outside' }])
  })

  it('fail the node if the organization may not use the pool, and make no call', async () => {
    await allow('lab')
    await startPool('dmz')
    const before = calls
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [call('a', { pool: 'dmz', retry: { max_attempts: 5 } })],
    })
    const { status, error } = await untilRun(suite.db, id)
    assert.equal(calls, before)
    assert.deepEqual([status, error?.code, error?.node_id], ['failed', 'unknown_pool', 'a'])
    assert.match(error!.message, /may not use the worker pool dmz.*operator/)
  })

  it('refuse a call that was queued before the pool was withdrawn', async () => {
    await allow('dmz')
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [call('a', { pool: 'dmz' })] })
    await untilStuck(id)
    await allow()
    const before = calls
    await startPool('dmz')
    const { status, error } = await untilRun(suite.db, id)
    assert.deepEqual([status, error?.code, calls], ['failed', 'unknown_pool', before])
  })

  it('without a worker: the run waits, says why, and goes on once there is one', async () => {
    await allow('sea', 'dmz')
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [call('a', { pool: 'sea' })],
      outputs: outputs('a'),
    })
    assert.match(
      await untilStuck(id),
      /^api_request waits for a worker of the pool sea since 20\S+Z; none has ever run: .*WORKER_POOL=sea/,
    )
    await startPool('sea')
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { a: 'sea' }])
    assert.equal(await stuckReason(id), null)
    await started.splice(0)[0]!.stop()
    const later = await queueRun(suite.db, suite.organizationId, { nodes: [call('a', { pool: 'sea' })] })
    assert.match(await untilStuck(later), /the pool sea since 20\S+Z; the last one was seen at 20\S+Z: /)
    await startPool('sea')
    assert.equal((await untilRun(suite.db, later)).status, 'completed')
  })

  it('without a worker take no capacity of the others, and their runs can be paused and resumed', async () => {
    await allow('dmz')
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [call('a', { pool: 'dmz' })] })
    await untilStuck(id)
    const used = () => seeRelay(suite.db.system, { id: randomUUID(), starts: 1, active: 1 })
    // A claim counts until its start is recorded.
    await until(async () => (await used()) === 0)
    await suite.db.tenant(suite.organizationId, testActor, (tx) => pauseRun(tx, id))
    await untilRun(suite.db, id, ['paused'])
    await suite.db.tenant(suite.organizationId, testActor, (tx) => unpauseRun(tx, id))
    await startPool('dmz')
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })

  it('of an activity that an operator paused: the pause is the reason', async () => {
    await allow('dmz')
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [call('a', { pool: 'dmz' })] })
    await untilStuck(id)
    const { workflowService } = suite.worker.client
    const of = { namespace: 'default', execution: { workflowId: `run:${id}` }, type: 'api_request' }
    await workflowService.pauseActivity({ ...of, identity: 'test', reason: 'test' })
    await sweep()
    assert.match((await stuckReason(id))!, /is paused in Temporal/)
    await startPool('dmz')
    await workflowService.unpauseActivity({ ...of, identity: 'test' })
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })
})

describe('a pool that an organization is given after a call was queued', () => {
  let grant = async () => {}
  const from = (place: string) => (async () => httpResponse({ body: { from: place } })) as never
  const suite = withWorker({
    http: from('outside'),
    // Between the segment that queues the call and its attempt.
    advance: (advance) => async (input) => {
      const answer = await advance(input)
      await grant()
      return answer
    },
  })
  const { allow, startPool, outputs } = poolsOf(suite, from)

  it('makes the call: the node does not fail, and no worker without the pool calls', async () => {
    grant = async () => void (await allow('dmz'))
    await startPool('dmz')
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [call('a', { pool: 'dmz', retry: { max_attempts: 1 } })],
      outputs: outputs('a'),
    })
    const run = await untilRun(suite.db, id)
    assert.deepEqual([run.status, run.outputs, run.error], ['completed', { a: 'dmz' }, null])
    const { attempt } = await suite.db.system('run_nodes').where({ run_id: id }).first('attempt')
    assert.equal(attempt, 1)
  })
})

/** The pools of a suite's organization, and their workers, which end after each test. */
function poolsOf(suite: WorkerSuite, answer: (from: string) => never) {
  const started: Pick<TestWorker, 'stop'>[] = []
  afterEach(async () => {
    await Promise.all(started.splice(0).map((worker) => worker.stop()))
  })
  return {
    started,
    allow: (...pools: string[]) => setPools(suite.db.system, suite.organizationId, pools),
    startPool: async (pool: string) => {
      started.push(await startPoolWorker(suite.db, suite.worker.taskQueue, { pool, http: answer(pool) }))
    },
    outputs: (...ids: string[]) =>
      Object.fromEntries(ids.map((id) => [id, `{{ nodes.${id}.output.body.from }}`])),
  }
}
