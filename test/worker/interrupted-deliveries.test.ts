import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beginAttempt } from '../../db/outgoing/moves/attempts.ts'
import { InterruptedDeliveries } from '../../worker/sweep/interrupted.ts'
import { Sweep } from '../../worker/sweep.ts'
import { changed } from '../../workflows/bundle/deliver.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'
import { testLog } from '../support/worker.ts'

/** Attempts that a dead worker did not report, and signals that arrive during an attempt. */
describe('interrupted deliveries', () => {
  const on = withDeliveries()

  it('repeat the only attempt if the worker died in it', async () => {
    const webhook = await on.createWebhook({ retry_schedule: [] })
    const id = await on.interrupt(webhook)
    const { status, attempts } = await on.ended(id)
    assert.deepEqual(
      [status, attempts.map((one: { status: string }) => one.status), on.receiver.received.length],
      ['succeeded', ['unknown', 'succeeded'], 1],
    )
  })

  it('keep the rest of the retry schedule: an attempt without a result does not count', async () => {
    on.receiver.behave(500, 500)
    const webhook = await on.createWebhook({ retry_schedule: [1] })
    const id = await on.interrupt(webhook)
    const { status, error, attempt_count } = await on.ended(id)
    assert.deepEqual([status, error, attempt_count], ['failed', 'the receiver answered 500', 3])
    assert.equal(on.receiver.received.length, 2)
  })

  it('finish the last attempt although signals arrive during it', async () => {
    on.receiver.behave(500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [1] }))
    await on.waiting(id)
    const release = on.receiver.hold()
    await until(async () => on.receiver.received.length === 2)
    const handle = on.worker.client.workflow.getHandle(`delivery:${id}`)
    for (let i = 0; i < 3; i++) await handle.signal(changed)
    release()
    const { status, attempt_count } = await on.ended(id)
    assert.deepEqual([status, attempt_count], ['succeeded', 2])
    assert.equal(on.receiver.received.length, 2)
  })

  it('free the slot of a dead worker after the lease', async () => {
    const webhook = await on.createWebhook({ concurrency: 1 })
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const dead = await on.raise(webhook)
    await on.db.system('deliveries').where({ id: dead }).update({ status: 'queued', held_for: null })
    // Not run by any workflow, as if Temporal still waited for the dead worker.
    await on.db.tenant(on.api.organizationId, testActor, (tx) => beginAttempt(tx, dead, randomUUID()))
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    const next = await on.raise(webhook)
    // The relay has claimed since: this one was queued later.
    await on.ended(await on.raise(await on.createWebhook()))
    assert.equal((await on.get(next)).status, 'queued')
    await passLease(dead)
    assert.equal((await on.ended(next)).status, 'succeeded')
  })

  /** As if its worker had not renewed the lease of its slot for long. */
  const passLease = (id: string) =>
    on.db
      .system('deliveries')
      .where({ id })
      .update({ slot_until: on.db.system.raw("now() - interval '2 seconds'") })

  /** Looks of the sweep, at these seconds. */
  const looks = async (...seconds: number[]): Promise<void> => {
    for (const second of seconds) await interrupted.look(second * 1_000)
  }
  let interrupted: InterruptedDeliveries
  beforeEach(() => {
    interrupted = new InterruptedDeliveries({ db: on.db, log: testLog })
  })

  const RELAY = randomUUID()
  /** A delivery that no workflow runs, as if Temporal still waited for the worker of the relay. */
  async function stranded(): Promise<string> {
    const webhook = await on.createWebhook()
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const id = await on.raise(webhook)
    await on.db.system('deliveries').where({ id }).update({ status: 'queued', held_for: null })
    await on.db.tenant(on.api.organizationId, testActor, (tx) => beginAttempt(tx, id, RELAY))
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    return id
  }
  const setSeen = (seen_at: Date) =>
    on.db.system('relays').insert({ id: RELAY, active: 0, seen_at }).onConflict('id').merge()
  const leaveDeadWorker = () => setSeen(new Date(Date.now() - 6_000))
  afterEach(() => on.db.system('relays').where({ id: RELAY }).delete())
  const outcomes = ({ status, attempts }: { status: string; attempts: { status: string }[] }) => [
    status,
    ...attempts.map((one) => one.status),
  ]

  it('are attempted again soon after their worker died, before Temporal gives its task to another', async () => {
    const id = await stranded()
    await looks(0, 10)
    assert.equal((await on.get(id)).attempt_count, 1, 'no worker has died')
    await passLease(id)
    await leaveDeadWorker()
    await looks(20, 22.9)
    assert.equal((await on.get(id)).attempt_count, 1, 'its relay may report itself after an outage')
    await looks(23)
    assert.deepEqual(outcomes(await on.ended(id)), ['succeeded', 'unknown', 'succeeded'])
  })

  it('are left alone by the worker that makes the attempt, if its own reports are late', async () => {
    const id = await stranded()
    await passLease(id)
    await leaveDeadWorker()
    const own = new InterruptedDeliveries({ db: on.db, log: testLog, relayId: RELAY })
    for (const second of [0, 5, 10]) await own.look(second * 1_000)
    assert.equal((await on.get(id)).attempt_count, 1)
    await looks(20, 23)
    await on.ended(id)
  })

  it('are started again if their worker died before the first attempt', async () => {
    const id = await stranded()
    await on.db.system('delivery_attempts').where({ delivery_id: id }).delete()
    await on.db.system('deliveries').where({ id }).update({ attempts: 0 })
    await passLease(id)
    await leaveDeadWorker()
    await looks(0, 3)
    assert.deepEqual(outcomes(await on.ended(id)), ['succeeded', 'succeeded'])
  })

  it('start again soon if the worker died that has the first task of their workflow', async () => {
    const webhook = await on.createWebhook()
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const id = await on.raise(webhook)
    await leaveDeadWorker()
    // No worker polls this queue, so the workflow waits as if its task had gone to a dead one.
    await on.worker.client.workflow.start('deliver', { taskQueue: 'dead', workflowId: `delivery:${id}` })
    await on.db
      .system('deliveries')
      .where({ id })
      .update({ status: 'queued', held_for: null, relay_id: RELAY })
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    assert.deepEqual(outcomes(await on.ended(id)), ['succeeded', 'succeeded'])
  })

  it('are retried soon after a worker died that had recorded their first attempt only', async () => {
    const id = await stranded()
    // Simulates a worker that died before it reported to Temporal, whose task ends 30 s later.
    await on.db.system('delivery_attempts').where({ delivery_id: id }).update({ status: 'failed' })
    const next_attempt_at = new Date(Date.now() - 3_000)
    await on.db.system('deliveries').where({ id }).update({ next_attempt_at, slot_until: null })
    await looks(0, 10)
    assert.equal((await on.get(id)).attempt_count, 1, 'no worker has died')
    await leaveDeadWorker()
    await looks(20, 23)
    assert.deepEqual(outcomes(await on.ended(id)), ['succeeded', 'failed', 'succeeded'])
  })

  it('keep the slot of an attempt that takes longer than the lease', async () => {
    const webhook = await on.createWebhook({ concurrency: 1 })
    const release = on.receiver.hold()
    const slow = await on.raise(webhook)
    await until(async () => on.receiver.received.length === 1)
    const next = await on.raise(webhook)
    const lease = async () => (await on.db.system('deliveries').where({ id: slow }).first()).slot_until
    const first = await lease()
    await until(async () => (await lease()) > first)
    release()
    await on.ended(slow)
    assert.equal(on.receiver.mostAtOnce(), 1)
    await on.ended(next)
    assert.equal(on.receiver.mostAtOnce(), 1)
  })

  it('continue as new when their history is long', async () => {
    on.receiver.behave(500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [3_600] }))
    await on.waiting(id)
    const handle = on.worker.client.workflow.getHandle(`delivery:${id}`)
    const { runId } = await handle.describe()
    // Temporal suggests it from the number of events in test/support/temporal-settings.ts on.
    await until(async () => {
      for (let i = 0; i < 20; i++) await handle.signal(changed)
      return (await handle.describe()).runId !== runId
    })
    assert.equal((await on.app('POST', `/deliveries/${id}/retry`)).status, 200)
    const { status, attempt_count } = await on.ended(id)
    assert.deepEqual([status, attempt_count, on.receiver.received.length], ['succeeded', 2, 2])
  })

  it('are signalled once, however often a user retries while no slot is free', async () => {
    on.receiver.behave(500)
    const webhook = await on.createWebhook({ retry_schedule: [3_600], concurrency: 1 })
    const id = await on.raise(webhook)
    await on.waiting(id)
    const release = on.receiver.hold()
    const slow = await on.raise(webhook)
    await until(async () => on.receiver.received.length === 2)
    for (let i = 0; i < 5; i++) assert.equal((await on.app('POST', `/deliveries/${id}/retry`)).status, 200)
    assert.equal((await on.db.system('deliveries').where({ id }).first('changes')).changes, 1)
    release()
    for (const one of [slow, id]) assert.equal((await on.ended(one)).status, 'succeeded')
  })

  const sweep = () =>
    new Sweep({ db: on.db, client: on.worker.client, taskQueue: on.worker.taskQueue, log: testLog }).once(
      '0 seconds',
    )

  it('continue with their next attempt if Temporal has lost their workflow', async () => {
    on.receiver.behave(500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [3_600, 3_600] }))
    const { next_attempt_at } = await on.waiting(id)
    await deleteWorkflow(`delivery:${id}`)
    await sweep()
    const resumed = await until(async () => {
      const delivery = await on.get(id)
      return delivery.status === 'delivering' && delivery
    })
    assert.deepEqual([resumed.next_attempt_at, resumed.attempt_count], [next_attempt_at, 1])
    assert.equal((await on.app('POST', `/deliveries/${id}/retry`)).status, 200)
    const { status, attempts } = await on.ended(id)
    assert.deepEqual(
      [status, attempts.map((one: { attempt: number; status: string }) => [one.attempt, one.status])],
      [
        'succeeded',
        [
          [1, 'failed'],
          [2, 'succeeded'],
        ],
      ],
    )
  })

  it('are sent again if the database is restored to a time before their end', async () => {
    const id = await on.raise(await on.createWebhook())
    await on.ended(id)
    await on.worker.client.workflow.getHandle(`delivery:${id}`).result()
    await on.db.system('delivery_attempts').where({ delivery_id: id }).delete()
    await on.db
      .system('deliveries')
      .where({ id })
      .update({ status: 'queued', attempts: 0, ended_at: null, started_at: null, lease_until: null })
    await until(async () => (await on.get(id)).status === 'delivering')
    await sweep()
    assert.equal((await on.ended(id)).status, 'succeeded')
    assert.equal(on.receiver.received.length, 2)
  })

  it('repeat an attempt at once if the database is restored to a time during it', async () => {
    on.receiver.behave(500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [3_600] }))
    await on.waiting(id)
    await on.db.system('delivery_attempts').where({ delivery_id: id }).update({ status: 'unknown' })
    await on.db
      .system('deliveries')
      .where({ id })
      .update({ next_attempt_at: null, slot_until: new Date(Date.now() - 1_000) })
    await sweep()
    assert.equal((await on.ended(id)).status, 'succeeded')
  })

  /** Simulates that Temporal has lost its database. */
  async function deleteWorkflow(workflowId: string): Promise<void> {
    const { workflowService } = on.worker.client
    await workflowService.deleteWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId },
    })
    await until(() =>
      on.worker.client.workflow
        .getHandle(workflowId)
        .describe()
        .then(
          () => false,
          () => true,
        ),
    )
  }
})
