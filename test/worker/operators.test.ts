import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { CHAIN_START, createRun } from '../../db/runs/runs.ts'
import { Sweep } from '../../worker/sweep.ts'
import { RUN_WORKFLOW_VERSION } from '../../workflows/bundle/protocol.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, testActor } from '../support/database.ts'
import { untilHeartbeats } from '../support/heartbeats.ts'
import { until } from '../support/until.ts'
import { withWorker } from '../support/with-worker.ts'
import { historyOf, queueRun, testLog, untilRun } from '../support/worker.ts'

/** Actions of an operator on a run in the Temporal UI, and the resulting rows. */
describe('an operator in Temporal', () => {
  let answer: (signal: AbortSignal) => Promise<unknown> = async () => ok
  const ok = { status: 200, headers: {}, text: '{}', bytes: 2 }
  const suite = withWorker({
    http: (async (_: unknown, { signal }: { signal: AbortSignal }) => answer(signal)) as never,
  })
  let sweep: Sweep
  before(() => {
    sweep = new Sweep({
      db: suite.db,
      client: suite.worker.client,
      taskQueue: suite.worker.taskQueue,
      log: testLog,
    })
    sweep.start(null, () => {})
  })
  after(() => sweep?.close())

  const handle = (id: string) => suite.worker.client.workflow.getHandle(`run:${id}`)
  const row = (id: string) => suite.db.system('runs').where({ id }).first()
  const wait = { id: 'wait', type: 'delay', title: 'Wait | *here*', config: { for: '1h' } }
  const call = { id: 'call', type: 'api_request', config: { method: 'POST', url: 'https://example.com/' } }
  async function waiting() {
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [wait] })
    await until(async () => (await row(id)).sleeps_until !== null)
    return id
  }

  it('finds a run by organization, workflow, name, record and status', async () => {
    const { workflow_id } = await row(await waiting())
    const record_id = randomUUID()
    const id = await suite.db.tenant(suite.organizationId, testActor, (tx) =>
      createRun(tx, {
        workflow: { id: workflow_id, version: 1, name: 'Test' },
        trigger: { type: 'api' },
        inputs: {},
        record_id,
        chain: CHAIN_START,
      }),
    )
    const query = [
      `AgxOrganization = '${suite.organizationId}'`,
      `AgxWorkflow = '${workflow_id}'`,
      `AgxWorkflowName = 'Test'`,
      `AgxRecord = '${record_id}'`,
      `ExecutionStatus = 'Running'`,
    ].join(' AND ')
    const found = await until(async () => {
      const ids: string[] = []
      for await (const { workflowId } of suite.worker.client.workflow.list({ query })) ids.push(workflowId)
      return ids.length > 0 && ids
    })
    assert.deepEqual(found, [`run:${id}`])
    await handle(id).terminate()
  })

  it('reads a table of the nodes and a link to the run', async () => {
    const id = await waiting()
    const details = await handle(id).query<{ currentDetails?: string }>('__temporal_workflow_metadata')
    assert.equal(
      details.currentDetails,
      [
        `**running**, 1 of 1 nodes reached. [Open the run](http://localhost:8080/v1/runs/${id})`,
        '',
        '| node | type | status |',
        '|---|---|---|',
        '| Wait \\| \\*here\\* | delay | waiting |',
        '',
      ].join('\n'),
    )
    await handle(id).terminate()
  })

  it('reads the table of a failed run, too', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [{ id: 'stop', title: 'Stop', type: 'stop', config: { status: 'failed', message: 'Enough.' } }],
    })
    assert.equal((await untilRun(suite.db, id)).status, 'failed')
    await assert.rejects(handle(id).result())
    const details = await handle(id).query<{ currentDetails?: string }>('__temporal_workflow_metadata')
    assert.match(details.currentDetails ?? '', /^\*\*failed\*\*[\s\S]*\| Stop \| stop \| \w+ \|/)
  })

  for (const [verb, status] of [
    ['cancel', 'cancelled'],
    ['terminate', 'terminated'],
  ] as const)
    it(`${verb}s a run, whose row ends before the next sweep, after 30 s, and whose end raises no event`, async () => {
      const id = await waiting()
      await handle(id)[verb]()
      assert.equal((await untilRun(suite.db, id)).status, status)
      const events = await suite.db.system('events').where({ subject_id: id }).pluck('name')
      assert.deepEqual(events, ['workflow.started'])
    })

  it('terminates a batch of runs', async () => {
    const ids = await Promise.all([waiting(), waiting(), waiting()])
    const visibilityQuery = `AgxOrganization = '${suite.organizationId}' AND ExecutionStatus = 'Running'`
    await until(async () => {
      const { count } = await suite.worker.client.workflow.count(visibilityQuery)
      return count >= ids.length || undefined
    }, 'all to be visible')
    await suite.worker.client.workflowService.startBatchOperation({
      namespace: 'default',
      jobId: randomUUID(),
      reason: 'test',
      visibilityQuery,
      terminationOperation: { identity: 'test' },
    })
    for (const id of ids) assert.equal((await untilRun(suite.db, id)).status, 'terminated')
  })

  it('sends a signal that the run does not know, which changes nothing', async () => {
    const id = await queueRun(suite.db, suite.organizationId, {
      nodes: [{ ...wait, config: { for: '2s' } }],
    })
    await untilRun(suite.db, id, ['running'])
    await handle(id).signal('approve', { by: 'mistake' })
    assert.equal((await untilRun(suite.db, id)).status, 'completed')
  })

  it('reads on the row why a run is stuck whose workflow task keeps failing', async () => {
    const other = await createOrganization(suite.db, { limits: { max_running: 0 } })
    const id = await queueRun(suite.db, other, { nodes: [wait] })
    await suite.db.system('runs').where({ id }).update({ status: 'running' })
    // Started by a newer worker: this worker fails the task.
    const input = {
      engine: RUN_WORKFLOW_VERSION + 1,
      organization_id: other,
      run_id: id,
      starts_with: 'wait',
    }
    const { client, taskQueue } = suite.worker
    await client.workflow.start('run', {
      taskQueue,
      workflowId: `run:${id}`,
      args: [input],
      // Temporal leaves a task that fails again to its timeout.
      workflowTaskTimeout: '1 second',
    })
    const stuck = await until(async () => {
      await sweep.once('0 seconds')
      return (await row(id)).stuck_reason ?? undefined
    }, 'the reason')
    assert.match(stuck, /^The workflow task is at attempt \d+: The workflow has version \d+, .* newer worker/)
    const events = await historyOf(client, `run:${id}`)
    assert.ok(!events.some((event) => event.workflowExecutionSignaledEventAttributes))
    await handle(id).terminate()
  })

  it('pauses an activity that is being retried: the row says so, and it goes on when unpaused', async () => {
    let calls = 0
    answer = async () => {
      calls++
      throw new NodeError('connection_refused', 'Nobody there.', { retryable: true })
    }
    const retry = { max_attempts: 50, initial_interval: '200ms', backoff: 1 }
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [{ ...call, retry }] })
    await untilRun(suite.db, id, ['running'])
    await until(async () => calls >= 2, 'two attempts')
    const execution = { workflowId: `run:${id}` }
    const { workflowService: service } = suite.worker.client
    await service.pauseActivity({ namespace: 'default', execution, type: 'api_request', identity: 'test' })
    answer = async () => ok
    await sleep(600)
    assert.equal((await row(id)).status, 'running')
    const reason = await until(async () => {
      await sweep.once('0 seconds')
      return (await row(id)).stuck_reason
    })
    assert.equal(reason, 'Activity api_request is paused in Temporal.')
    await service.unpauseActivity({ namespace: 'default', execution, type: 'api_request', identity: 'test' })
    const { status } = await untilRun(suite.db, id)
    assert.deepEqual([status, (await row(id)).stuck_reason], ['completed', null])
  })

  it('pauses an activity during its attempt, which still counts', async () => {
    let calls = 0
    let release = () => {}
    answer = (signal) => {
      calls++
      return new Promise((resolve, reject) => {
        release = () => resolve(ok)
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    }
    const id = await queueRun(suite.db, suite.organizationId, { nodes: [call] })
    await until(() => calls > 0)
    await suite.worker.client.workflowService.pauseActivity({
      namespace: 'default',
      execution: { workflowId: `run:${id}` },
      type: 'api_request',
      identity: 'test',
    })
    await untilHeartbeats(suite.worker.client, `run:${id}`)
    release()
    assert.deepEqual([(await untilRun(suite.db, id)).status, calls], ['completed', 1])
  })
})
