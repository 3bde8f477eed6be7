import assert from 'node:assert/strict'
import { tsToMs } from '@temporalio/common/lib/time.js'
import type { HttpClient } from '../../activities/http/client.ts'
import { cancelRun, terminateRun } from '../../db/runs/moves/ends.ts'
import { pauseRun, unpauseRun } from '../../db/runs/moves/pauses.ts'
import { getRunNodes } from '../../db/runs/views.ts'
import { RUN_WORKFLOW_VERSION } from '../../workflows/bundle/protocol.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, delay, edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import {
  historyOf,
  nodeStatuses,
  queueRun,
  startWorker,
  type TestWorker,
  untilRun,
} from '../support/worker.ts'

describe('runs that are paused', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let keys: string[] = []
  let answer: HttpClient['call']
  const http: HttpClient['call'] = (request, options) => {
    keys.push(request.headers?.['Idempotency-Key'] ?? '')
    return answer(request, options)
  }

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, { http })
  })
  beforeEach(() => {
    keys = []
    answer = async () => httpResponse()
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  const move = (work: typeof pauseRun | typeof terminateRun, id: string) =>
    db.tenant<unknown>(organizationId, testActor, (tx) => work(tx, id))
  const row = (id: string) => db.system('runs').where({ id }).first()
  const nodes = (id: string) => nodeStatuses(db, id)
  const asleep = (id: string) => until(async () => (await row(id)).sleeps_until !== null)
  /** The timers that the newest workflow of a run has started, in milliseconds. */
  const timers = async (id: string) =>
    (await historyOf(worker.client, `run:${id}`)).flatMap(({ timerStartedEventAttributes: timer }) =>
      timer ? [tsToMs(timer.startToFireTimeout)] : [],
    )
  const statusInTemporal = async (id: string) =>
    (await worker.client.workflow.getHandle(`run:${id}`).describe()).status.name

  it('start no node and have no workflow, and go on where they were; a delay that has ended fires then', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('pause', '700ms'), set('next')],
      edges: [edge('pause', 'next')],
    })
    await asleep(id)
    const { sleeps_until: wakesAt } = await row(id)
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    await until(async () => (await statusInTemporal(id)) === 'COMPLETED')
    await until(() => Date.now() > wakesAt.getTime())
    assert.deepEqual(await nodes(id), { pause: 'waiting' })
    await move(unpauseRun, id)
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(await nodes(id), { pause: 'completed', next: 'completed' })
    const started = await db.system('events').where({ subject_id: id, name: 'workflow.started' })
    assert.equal(started.length, 1)
  })

  it('go on after a worker was replaced, and after a resume that comes at once', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('pause', '300ms'), set('next')],
      edges: [edge('pause', 'next')],
    })
    await asleep(id)
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    await worker.stop()
    worker = await startWorker(db, { http }, worker.taskQueue)
    await move(unpauseRun, id)
    assert.equal((await untilRun(db, id)).status, 'completed')

    const other = await queueRun(db, organizationId, { nodes: [delay('pause', '2s')] })
    await asleep(other)
    for (let n = 0; n < 3; n++) {
      await move(pauseRun, other)
      await untilRun(db, other, ['paused'])
      await move(unpauseRun, other)
    }
    assert.equal((await untilRun(db, other)).status, 'completed')
    assert.deepEqual([(await row(other)).pauses, (await row(other)).resumes], [3, 3])
  })

  it('let an attempt in progress end, and start nothing after it', async () => {
    let release = () => {}
    answer = () =>
      new Promise((resolve) => {
        release = () => resolve(httpResponse())
      })
    const id = await queueRun(db, organizationId, {
      nodes: [call('call'), set('next')],
      edges: [edge('call', 'next')],
    })
    await until(() => keys.length === 1)
    await move(pauseRun, id)
    await until(async () => (await row(id)).workflow_command === null)
    await new Promise((resolve) => setTimeout(resolve, 300))
    assert.equal((await row(id)).status, 'running')
    release()
    await untilRun(db, id, ['paused'])
    assert.deepEqual(await nodes(id), { call: 'completed' })
    await move(unpauseRun, id)
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(keys, [`${id}:call`])
  })

  it('withdraw a pause while an attempt is in progress', async () => {
    // The responses of both runs, whose calls arrive in any order.
    const releases: (() => void)[] = []
    answer = () => new Promise((resolve) => releases.push(() => resolve(httpResponse())))
    const id = await queueRun(db, organizationId, {
      nodes: [call('call'), delay('short', '100ms'), set('next')],
      edges: [edge('call', 'next'), edge('short', 'next')],
    })
    const parallel = await queueRun(db, organizationId, {
      nodes: [set('start'), call('call'), delay('short', '500ms'), set('next')],
      edges: [edge('start', 'call'), edge('start', 'short'), edge('short', 'next')],
    })
    await until(() => keys.length === 2)
    await move(cancelRun, id)
    await move(pauseRun, parallel)
    await until(async () => (await nodes(parallel)).short === 'completed')
    assert.deepEqual(await nodes(parallel), { start: 'completed', call: 'running', short: 'completed' })
    await move(unpauseRun, parallel)
    await until(async () => (await nodes(parallel)).next === 'completed')
    for (const release of releases) release()
    assert.equal((await untilRun(db, parallel)).status, 'completed')
  })

  it('are paused between two attempts of a node, which then goes on counting and waiting', async () => {
    answer = async () => {
      if (keys.length < 2) throw new NodeError('connection_refused', 'Nobody there.', { retryable: true })
      return httpResponse()
    }
    const id = await queueRun(db, organizationId, {
      nodes: [call('call', { retry: { max_attempts: 3, initial_interval: '1h' } })],
    })
    await until(async () => (await db.system('run_nodes').where({ run_id: id }).first())?.attempt === 2)
    const due = async () => {
      const [node] = await db.tenant(organizationId, testActor, (tx) => getRunNodes(tx, id))
      return node?.next_attempt_at?.getTime()
    }
    const announced = (await due()) ?? 0
    assert.ok(announced > Date.now() + 3_000_000, String(announced))
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    await move(unpauseRun, id)
    // The rest of the delay is a timer.
    await until(async () => (await timers(id)).some((ms) => ms > 3_000_000))
    assert.deepEqual([keys.length, await due()], [1, announced])
    await move(pauseRun, id)
    await untilRun(db, id, ['paused'])
    await db.system('run_nodes').where({ run_id: id }).update({ next_attempt_at: new Date() })
    await move(unpauseRun, id)
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(keys, Array(2).fill(`${id}:call`))
    assert.equal((await db.system('run_nodes').where({ run_id: id }).first()).attempt, 2)
    assert.equal(await due(), undefined)
  })

  it('hold no slot', async () => {
    const one = await createOrganization(db, { limits: { max_running: 1 } })
    const id = await queueRun(db, one, { nodes: [call('call')] })
    let release = () => {}
    answer = () =>
      new Promise((resolve) => {
        release = () => resolve(httpResponse())
      })
    await until(() => keys.length === 1)
    const next = await queueRun(db, one, { nodes: [set('set')] })
    await db.tenant(one, testActor, (tx) => pauseRun(tx, id))
    release()
    assert.equal((await untilRun(db, next)).status, 'completed')
    assert.equal((await row(id)).status, 'paused')
  })

  it('are cancelled and terminated at once', async () => {
    for (const [work, status] of [
      [cancelRun, 'cancelled'],
      [terminateRun, 'terminated'],
    ] as const) {
      const id = await queueRun(db, organizationId, { nodes: [delay('pause', '1h')] })
      await asleep(id)
      await move(pauseRun, id)
      await untilRun(db, id, ['paused'])
      await move(work, id)
      assert.equal((await row(id)).status, status)
      assert.deepEqual(await nodes(id), { pause: 'cancelled' })
    }
  })
})

describe('runs that are terminated', () => {
  let db: TestDatabase
  const workers: TestWorker[] = []
  const start = async (taskQueue?: string) => {
    const worker = await startWorker(db, {}, taskQueue)
    workers.push(worker)
    return worker
  }
  before(async () => {
    db = await createTestDatabase()
  })
  after(async () => {
    for (const worker of workers) await worker.stop()
    await db?.drop()
  })

  it('end at once; their workflow ends as soon as a relay is there', async () => {
    const organizationId = await createOrganization(db)
    const worker = await start()
    const id = await queueRun(db, organizationId, { nodes: [delay('long', '1h')] })
    await until(async () => (await db.system('runs').where({ id }).first()).sleeps_until !== null)
    await worker.stop()
    assert.equal(await db.tenant(organizationId, testActor, (tx) => terminateRun(tx, id)), true)
    const run = await db.system('runs').where({ id }).first()
    assert.deepEqual([run.status, run.error.code], ['terminated', 'terminated'])
    assert.equal(await db.tenant(organizationId, testActor, (tx) => terminateRun(tx, id)), false)
    const again = await start(worker.taskQueue)
    const handle = again.client.workflow.getHandle(`run:${id}`)
    for (let n = 0; (await handle.describe()).status.name !== 'TERMINATED'; n++) {
      assert.ok(n < 500, 'the workflow still runs')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    assert.equal((await db.system('runs').where({ id }).first()).status, 'terminated')
  })

  it('are Terminated in Temporal too if their workflow starts only afterwards', async () => {
    const organizationId = await createOrganization(db, { limits: { max_running: 0 } })
    const worker = await start()
    const id = await queueRun(db, organizationId, { nodes: [delay('long', '1h')] })
    await db.tenant(organizationId, testActor, (tx) => terminateRun(tx, id))
    // Simulates a relay that had claimed the run.
    const input = {
      engine: RUN_WORKFLOW_VERSION,
      organization_id: organizationId,
      run_id: id,
      starts_with: 'long',
    }
    const { client, taskQueue } = worker
    const handle = await client.workflow.start('run', { taskQueue, workflowId: `run:${id}`, args: [input] })
    await handle.result().catch(() => {})
    assert.equal((await handle.describe()).status.name, 'TERMINATED')
    const events = await db.system('events').where({ organization_id: organizationId })
    assert.deepEqual(events, [])
  })
})
