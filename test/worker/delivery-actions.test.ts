import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'

/** The actions of users on a delivery in flight. */
describe('a delivery in flight', () => {
  const suite = withDeliveries()
  let { app, receiver, createWebhook, raise, get, ended, waiting } = suite
  before(() => {
    ;({ app, receiver, createWebhook, raise, get, ended, waiting } = suite)
  })

  const act = async (id: string, verb: string, body?: object) => {
    const answer = await app('POST', `/deliveries/${id}/${verb}`, body)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body
  }
  const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()

  it('is paused: no attempt is made until it is resumed, then the rest of the schedule', async () => {
    receiver.behave(500)
    const id = await raise(await createWebhook({ retry_schedule: [1] }))
    await waiting(id)
    const paused = await act(id, 'pause')
    assert.deepEqual([paused.status, paused.held_for], ['held', 'paused'])
    assert.equal((await suite.worker.client.workflow.getHandle(`delivery:${id}`).result()).status, 'held')
    // The retry of another, which failed later, has been made.
    receiver.behave(500)
    const other = await raise(await createWebhook({ retry_schedule: [1] }))
    assert.equal((await ended(other)).attempt_count, 2)
    assert.equal(receiver.received.length, 2)
    await act(id, 'resume')
    const { status, attempt_count } = await ended(id)
    assert.deepEqual([status, attempt_count, receiver.received.length], ['succeeded', 2, 3])
  })

  it('stays paused when its webhook is deactivated and activated again, and keeps its next attempt', async () => {
    receiver.behave(500)
    const webhook = await createWebhook({ retry_schedule: [3_600] })
    const id = await raise(webhook)
    const { next_attempt_at } = await waiting(id)
    await act(id, 'pause')
    await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    await app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    assert.equal((await get(id)).held_for, 'paused')
    assert.equal((await act(id, 'resume')).next_attempt_at, next_attempt_at)
    await until(async () => (await get(id)).status === 'delivering')
    await sleep(300)
    assert.equal(receiver.received.length, 1)
  })

  it('finishes the attempt in progress when it is paused, and frees the slot', async () => {
    const webhook = await createWebhook({ concurrency: 1, retry_schedule: [1] })
    receiver.behave(500, 500)
    const id = await raise(webhook)
    await waiting(id)
    const release = receiver.hold()
    await until(async () => receiver.received.length === 2)
    await act(id, 'pause')
    release()
    await until(async () => (await get(id)).attempts.at(-1).status === 'failed')
    assert.equal((await get(id)).status, 'failed', 'that was its last attempt')
    receiver.behave()
    assert.equal((await ended(await raise(webhook))).status, 'succeeded')
  })

  it('is rescheduled to an earlier or a later time', async () => {
    receiver.behave(500)
    const id = await raise(await createWebhook({ retry_schedule: [3_600] }))
    await waiting(id)
    const later = inSeconds(7_200)
    assert.equal((await act(id, 'reschedule', { at: later })).next_attempt_at, later)
    await act(id, 'reschedule', { at: inSeconds(1) })
    const { status, attempts } = await ended(id)
    assert.equal(status, 'succeeded')
    const gap = Date.parse(attempts[1].started_at) - Date.parse(attempts[0].started_at)
    assert.ok(gap >= 1_000, `${gap} ms`)
  })

  it('is retargeted: a new delivery, signed with the secret of the other webhook, and the old one is cancelled', async () => {
    receiver.behave(500)
    const first = await createWebhook({ retry_schedule: [3_600], headers: { 'x-team': 'first' } })
    const second = await createWebhook({ retry_schedule: [] })
    const id = await raise(first)
    await waiting(id)
    const created = await act(id, 'retarget', { webhook_id: second.id })
    assert.notEqual(created.id, id)
    assert.equal(created.webhook_id, second.id)
    assert.equal((await ended(created.id)).status, 'succeeded')
    const { headers, body } = receiver.received[1]!
    new Webhook(second.secret).verify(body, headers)
    assert.throws(() => new Webhook(first.secret).verify(body, headers))
    assert.equal(headers['x-team'], undefined)
    const old = await get(id)
    assert.deepEqual([old.status, old.webhook_id], ['cancelled', first.id])
    assert.match(old.error, new RegExp(created.id))
    assert.equal(
      (await suite.worker.client.workflow.getHandle(`delivery:${id}`).result()).status,
      'cancelled',
    )
  })

  it('follows another retry schedule of its webhook: its next attempt is sooner, later, or not made', async () => {
    receiver.behave(500)
    const webhook = await createWebhook({ retry_schedule: [3_600, 3_600] })
    const id = await raise(webhook)
    await waiting(id)
    const [first] = (await get(id)).attempts
    const patch = (retry_schedule: number[] | null) =>
      app('PATCH', `/webhooks/outgoing/${webhook.id}`, { retry_schedule })
    await patch([7_200])
    const wait = Date.parse((await get(id)).next_attempt_at) - Date.parse(first.started_at)
    assert.ok(wait >= 7_200_000 && wait <= 8_700_000, `${wait} ms`)
    receiver.behave(500)
    await patch([1, 3_600])
    await until(async () => receiver.received.length === 1)
    await waiting(id)
    await patch([1])
    const { status, error, attempt_count } = await ended(id)
    assert.deepEqual(
      [status, error, attempt_count],
      ['failed', 'the retry schedule of the webhook allows no further attempt', 2],
    )
  })

  it('keeps a time that a user or the receiver set when the retry schedule changes', async () => {
    const webhook = await createWebhook({ retry_schedule: [60] })
    receiver.behave({ status: 503, headers: { 'retry-after': '1800' } }, 500)
    const asked = await raise(webhook)
    await waiting(asked)
    const moved = await raise(webhook)
    await waiting(moved)
    await act(moved, 'reschedule', { at: inSeconds(7_200) })
    const times = async () => [(await get(asked)).next_attempt_at, (await get(moved)).next_attempt_at]
    const before = await times()
    await app('PATCH', `/webhooks/outgoing/${webhook.id}`, { retry_schedule: [120, 120] })
    assert.deepEqual(await times(), before)
  })
})
