import assert from 'node:assert/strict'
import { Sweep } from '../../worker/sweep.ts'
import { untilHeartbeats } from '../support/heartbeats.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'
import { testLog } from '../support/worker.ts'

describe('a delivery whose activity an operator pauses in Temporal', () => {
  const on = withDeliveries()

  const sweep = () =>
    new Sweep({ db: on.db, client: on.worker.client, taskQueue: on.worker.taskQueue, log: testLog }).once(
      '0 seconds',
    )
  const target = (id: string) => ({
    namespace: 'default',
    execution: { workflowId: `delivery:${id}` },
    type: 'deliverUntilDone',
    identity: 'test',
  })
  /** The row is written before Temporal knows the activity of the retries. */
  const pause = (id: string) =>
    until(() => on.worker.client.workflowService.pauseActivity(target(id)).catch(() => false as const))
  const unpause = (id: string) => on.worker.client.workflowService.unpauseActivity(target(id))

  it('says so, is not woken, leaves its slot to others, and continues when unpaused', async () => {
    on.receiver.behave(500)
    const webhook = await on.createWebhook({ concurrency: 1, retry_schedule: [3] })
    const id = await on.raise(webhook)
    await on.waiting(id)
    await pause(id)
    await until(async () => {
      await sweep()
      return (await on.get(id)).held_for === 'operator'
    })
    on.receiver.behave()
    for (let n = 0; n < 3; n++) assert.equal((await on.ended(await on.raise(webhook))).status, 'succeeded')
    const { next_attempt_at } = await on.get(id)
    await until(async () => Date.now() > Date.parse(next_attempt_at))
    assert.equal((await on.ended(await on.raise(webhook))).status, 'succeeded')
    const paused = await on.get(id)
    assert.deepEqual([paused.status, paused.held_for, paused.attempt_count], ['delivering', 'operator', 1])
    await unpause(id)
    const { status, held_for, attempt_count } = await on.ended(id)
    assert.deepEqual([status, held_for, attempt_count], ['succeeded', null, 2])
  })

  it('finishes an attempt in progress, and then waits', async () => {
    on.receiver.behave(500, 500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [1, 1] }))
    await on.waiting(id)
    const release = on.receiver.hold()
    await until(async () => (await on.get(id)).attempt_count === 2)
    await pause(id)
    await untilHeartbeats(on.worker.client, `delivery:${id}`)
    release()
    await until(async () => (await on.get(id)).held_for === 'operator')
    // The retry of another, which failed later, has been made.
    on.receiver.behave(500)
    const other = await on.raise(await on.createWebhook({ retry_schedule: [1] }))
    assert.equal((await on.ended(other)).attempt_count, 2)
    assert.equal((await on.get(id)).attempt_count, 2)
    await unpause(id)
    assert.equal((await on.ended(id)).status, 'succeeded')
  })

  it('can be cancelled', async () => {
    on.receiver.behave(500)
    const id = await on.raise(await on.createWebhook({ retry_schedule: [60] }))
    await on.waiting(id)
    await pause(id)
    assert.equal((await on.app('POST', `/deliveries/${id}/cancel`)).status, 200)
    assert.equal((await on.ended(id)).status, 'cancelled')
    const closed = async () =>
      (await on.worker.client.workflow.getHandle(`delivery:${id}`).describe()).status.name !== 'RUNNING'
    await until(closed)
  })
})
