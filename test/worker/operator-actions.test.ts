import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import proto from '@temporalio/proto'
import { createMany } from '../../db/records/create.ts'
import { Sweep } from '../../worker/sweep.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { testActor } from '../support/database.ts'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { httpResponse } from '../support/http-response.ts'
import { importsOf } from '../support/imports.ts'
import { call } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import { historyOf, queueRun, startWorker, type TestWorker, testLog, untilRun } from '../support/worker.ts'

/** Actions of an operator in the Temporal UI on workflows other than runs, and on single activities. */
describe('an operator in Temporal', () => {
  let on: Deliveries
  let worker: TestWorker
  let sweep: Sweep
  let answer: () => Promise<unknown>
  const signals: AbortSignal[] = []
  before(async () => {
    on = await startDeliveries()
    worker = await startWorker(on.db, {
      secretsKey: on.api.secretsKey,
      http: (async (_: unknown, { signal }: { signal: AbortSignal }) => {
        signals.push(signal)
        return answer()
      }) as never,
    })
    sweep = new Sweep({ db: on.db, client: worker.client, taskQueue: worker.taskQueue, log: testLog })
    sweep.start(null, () => {})
  })
  beforeEach(() => {
    on.receiver.behave()
    answer = async () => httpResponse()
  })
  after(async () => {
    await sweep?.close()
    await worker?.stop()
    await on?.stop()
  })

  /** Ignores errors: Temporal may not know a workflow or activity yet. */
  const quiet = (work: Promise<unknown>) =>
    work.then(
      () => true,
      () => false as const,
    )
  const service = () => worker.client.workflowService
  const resetActivity = (workflowId: string, type: string) =>
    service().resetActivity({ namespace: 'default', execution: { workflowId }, type, identity: 'test' })

  /** Resets an ended workflow to its first task, and waits for the end of the new one. */
  async function reset(workflowId: string) {
    const handle = worker.client.workflow.getHandle(workflowId)
    await handle.result()
    const first = (await historyOf(worker.client, workflowId)).find(
      (event) => event.workflowTaskCompletedEventAttributes,
    )!
    const { runId } = await service().resetWorkflowExecution({
      namespace: 'default',
      reason: 'test',
      requestId: randomUUID(),
      workflowExecution: { workflowId },
      workflowTaskFinishEventId: first.eventId!,
    })
    await worker.client.workflow.getHandle(workflowId, runId).result()
    await sweep.once('0 seconds')
  }

  it('resets a delivery, which is not sent again', async () => {
    const webhook = await on.createWebhook({ retry_schedule: [1] })
    on.receiver.behave(500)
    const id = await on.raise(webhook)
    const before = await on.ended(id)
    assert.deepEqual([before.status, on.receiver.received.length], ['succeeded', 2])
    await reset(`delivery:${id}`)
    assert.deepEqual(await on.get(id), before)
    assert.equal(on.receiver.received.length, 2)
  })

  it('resets an import, whose rows are not imported again', async () => {
    const imports = importsOf(on.api)
    const done = await imports.run({ entity: 'companies' }, 'Name\nAcme\nUmbrella\n')
    assert.deepEqual([done.status, done.progress.created], ['completed', 2])
    await reset(`import:${done.id}`)
    const { body } = await on.api.request('GET', `/v1/imports/${done.id}`)
    assert.deepEqual(body, done)
    assert.equal((await on.api.request('GET', '/v1/objects/companies')).body.total, 2)
  })

  it('resets an export, whose file stays as it is', async () => {
    const created = await on.api.request('POST', '/v1/exports', { body: { entity: 'contacts' } })
    const look = async () => (await on.api.request('GET', `/v1/exports/${created.body.id}`)).body
    await until(async () => (await look()).ended_at)
    const done = await look()
    assert.equal(done.status, 'completed')
    await reset(`export:${done.id}`)
    assert.deepEqual(await look(), done)
  })

  for (const verb of ['cancel', 'terminate'] as const) {
    it(`${verb}s an export, which fails and says why`, async () => {
      // Three pieces, of a second each.
      await on.db.tenant(on.api.organizationId, testActor, (tx) =>
        createMany(
          tx,
          'companies',
          Array.from({ length: 600 }, (_, n) => ({ name: `${verb} ${n}` })),
        ),
      )
      await on.db.asOwner((client) =>
        client.query(`
          create or replace function slow() returns trigger language plpgsql
            as 'begin perform pg_sleep(1); return new; end';
          create or replace trigger slow before insert on export_pieces for each row execute function slow()`),
      )
      const { body } = await on.api.request('POST', '/v1/exports', { body: { entity: 'companies' } })
      const workflow = worker.client.workflow.getHandle(`export:${body.id}`)
      await until(() => quiet(workflow[verb]()))
      const done = await until(async () => {
        await sweep.glance()
        const row = await on.db.system('exports').where({ id: body.id }).first()
        return row.ended_at && row
      })
      await on.db.asOwner((client) => client.query('drop trigger slow on export_pieces'))
      const ended = verb === 'cancel' ? 'cancelled' : 'terminated'
      assert.deepEqual(
        [done.status, done.error?.message],
        ['failed', `The export's workflow was ${ended} in Temporal.`],
      )
    })

    it(`${verb}s the test of a node, which ends`, async () => {
      const aborted = new AbortController()
      const { length } = signals
      answer = () =>
        new Promise((_, reject) =>
          aborted.signal.addEventListener('abort', () => reject(new Error('aborted'))),
        )
      const body = { confirm: true, node_type: 'api_request', config: { url: 'https://example.com/' } }
      const tested = on.api.request('POST', '/v1/workflows/nodes/test', { body })
      await until(async () => signals.length > length)
      const { id } = await on.db.system('runs').where({ kind: 'node_test' }).orderBy('id', 'desc').first('id')
      await worker.client.workflow.getHandle(`node-test:${id}`)[verb]()
      const { status } = await untilRun(on.db, id)
      assert.equal(status, verb === 'cancel' ? 'cancelled' : 'terminated')
      aborted.abort()
      assert.equal((await tested).status, 200)
    })
  }

  it('reads that the test of a node has no result, as when its worker was killed', async () => {
    const aborted = new AbortController()
    const { length } = signals
    answer = () =>
      new Promise((_, reject) => aborted.signal.addEventListener('abort', () => reject(new Error('aborted'))))
    const body = { confirm: true, node_type: 'api_request', config: { url: 'https://example.com/' } }
    const tested = on.api.request('POST', '/v1/workflows/nodes/test', { body })
    await until(async () => signals.length > length)
    const { id } = await on.db.system('runs').where({ kind: 'node_test' }).orderBy('id', 'desc').first('id')
    const workflowId = `node-test:${id}`
    const { raw } = await worker.client.workflow.getHandle(workflowId).describe()
    await service().respondActivityTaskFailedById({
      namespace: 'default',
      workflowId,
      activityId: raw.pendingActivities![0]!.activityId!,
      failure: { message: 'heartbeat timeout' },
    })
    await until(async () => {
      await sweep.once('0 seconds')
      return (await on.db.system('runs').where({ id }).first('ended_at')).ended_at
    })
    aborted.abort()
    const { status, error } = (await tested).body
    assert.equal(status, 'failed')
    assert.match(error.message, /has no result: .* A call may have been made/)
  })

  it('resets an activity of a run that waits for its next attempt: it is made at once, and attempts count', async () => {
    answer = async () => {
      throw new NodeError('connection_refused', 'Nobody there.', { retryable: true })
    }
    const retry = { max_attempts: 2, initial_interval: '1h' }
    const id = await queueRun(on.db, on.api.organizationId, { nodes: [call('call', { retry })] })
    const node = () => on.db.system('run_nodes').where({ run_id: id }).first()
    // The row already has the number of the next attempt, before Temporal knows that this one has failed.
    await until(async () => (await node())?.attempt === 2)
    await until(async () => {
      const { raw } = await worker.client.workflow.getHandle(`run:${id}`).describe()
      return raw.pendingActivities?.[0]?.attempt === 2
    })
    await resetActivity(`run:${id}`, 'api_request')
    const { status, error } = await untilRun(on.db, id)
    assert.deepEqual([status, error?.code, (await node()).attempt], ['failed', 'connection_refused', 2])
  })

  it('resets the activity of a delivery: the row is read again, and its next attempt stays at its time', async () => {
    on.receiver.behave(500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [3_600] }))
    const { next_attempt_at } = await on.waiting(id)
    const activity = async () => {
      const { raw } = await worker.client.workflow.getHandle(`delivery:${id}`).describe()
      return raw.pendingActivities?.[0]
    }
    await until(async () => (await activity())?.scheduledTime)
    const completedAt = async () => JSON.stringify((await activity())?.lastAttemptCompleteTime)
    const before = await completedAt()
    await until(() => quiet(resetActivity(`delivery:${id}`, 'deliverUntilDone')))
    await until(async () => (await completedAt()) !== before)
    const { PENDING_ACTIVITY_STATE_SCHEDULED: waits } = proto.temporal.api.enums.v1.PendingActivityState
    await until(async () => (await activity())?.state === waits)
    const after = await on.get(id)
    assert.deepEqual([after.next_attempt_at, after.attempt_count], [next_attempt_at, 1])
    assert.equal((await on.app('POST', `/deliveries/${id}/retry`)).status, 200)
    assert.equal((await on.ended(id)).status, 'succeeded')
  })
})
