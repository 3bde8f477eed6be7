import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import proto from '@temporalio/proto'
import { Webhook } from 'standardwebhooks'
import { insertEvents } from '../../db/events/outbox.ts'
import { NamespaceAttributes } from '../../worker/namespace-attributes.ts'
import { deliveriesQueue } from '../../worker/queues/deliveries.ts'
import { Sweep } from '../../worker/sweep.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'
import { historyOf, testLog } from '../support/worker.ts'

const CANCEL_REQUESTED =
  proto.temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED

/** Far more than the connections of the worker. The relay lets an organization have up to 200. */
const IN_FLIGHT = Number(process.env.IN_FLIGHT ?? 100)

describe('deliveries on Temporal', () => {
  const suite = withDeliveries()
  let { db, api, app, receiver, createWebhook, raise, get, ended, waiting } = suite
  before(() => {
    ;({ db, api, app, receiver, createWebhook, raise, get, ended, waiting } = suite)
  })

  it('arrive once, signed, with one workflow task', async () => {
    const webhook = await createWebhook()
    const id = await raise(webhook)
    const delivery = await ended(id)
    assert.deepEqual([delivery.status, delivery.http_status], ['succeeded', 204])
    assert.equal(receiver.received.length, 1)
    const { headers, body } = receiver.received[0]!
    assert.equal(delivery.message_id, headers['webhook-id'])
    assert.equal(
      (new Webhook(webhook.secret).verify(body, headers) as { event: string }).event,
      webhook.event,
    )
    await suite.worker.client.workflow.getHandle(`delivery:${id}`).result()
    const events = await historyOf(suite.worker.client, `delivery:${id}`)
    assert.ok(events.length <= 8, `${events.length} events`)
    assert.equal(events.filter((one) => one.workflowTaskCompletedEventAttributes).length, 1)
  })

  it(`in flight hold no connection: ${IN_FLIGHT} attempts share the pool, and each is made once`, async () => {
    const release = receiver.hold()
    const webhooks = await Promise.all(
      Array.from({ length: IN_FLIGHT / 50 }, () => createWebhook({ concurrency: 50 })),
    )
    const events = webhooks.flatMap(({ event: name }) =>
      Array.from({ length: 50 }, () => ({ name, data: {} })),
    )
    await db.tenant(api.organizationId, testActor, (tx) => insertEvents(tx, events))
    await until(() => receiver.mostAtOnce() >= IN_FLIGHT, 'attempts in flight')
    release()
    const rows = () =>
      db.system('deliveries').whereIn(
        'webhook_id',
        webhooks.map(({ id }) => id),
      )
    await until(async () => (await rows()).every(({ ended_at }) => ended_at))
    const ends = (await rows()).map(({ status, attempts }) => `${status} ${attempts}`)
    assert.deepEqual(ends, Array(IN_FLIGHT).fill('succeeded 1'))
    assert.equal(receiver.received.length, IN_FLIGHT)
  })

  it('report a contact created over HTTP, with the custom headers', async () => {
    await createWebhook({ events: ['contact.created'], headers: { 'X-Team': 'crm' } })
    const made = await api.request('POST', '/v1/objects/contacts', { body: { email: 'zoe@example.com' } })
    assert.equal(made.status, 201)
    const { headers, body } = await until(async () => receiver.received[0])
    assert.equal(headers['x-team'], 'crm')
    assert.deepEqual(JSON.parse(body).data, made.body)
  })

  it('are retried with the same webhook-id until the receiver accepts', async () => {
    receiver.behave(500, 503)
    const delivery = await ended(await raise(await createWebhook()))
    assert.deepEqual([delivery.status, delivery.attempt_count], ['succeeded', 3])
    assert.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, 1)
    assert.deepEqual(
      delivery.attempts.map((one: { status: string; http_status: number }) => [one.status, one.http_status]),
      [
        ['failed', 500],
        ['failed', 503],
        ['succeeded', 204],
      ],
    )
    for (const { duration_ms } of delivery.attempts) assert.ok(Number.isInteger(duration_ms), duration_ms)
  })

  it('fail after the last retry; a redirect is a failure', async () => {
    receiver.behave(302, 302)
    const delivery = await ended(await raise(await createWebhook({ retry_schedule: [1] })))
    assert.deepEqual([delivery.status, delivery.attempt_count, receiver.received.length], ['failed', 2, 2])
  })

  it('disable the endpoint on 410', async () => {
    receiver.behave(410)
    const webhook = await createWebhook()
    assert.equal((await ended(await raise(webhook))).status, 'failed')
    const { body } = await app('GET', `/webhooks/outgoing/${webhook.id}`)
    assert.deepEqual([body.status, body.status_reason], ['Inactive', 'the receiver answered 410 Gone'])
  })

  it('never reach a private address', async () => {
    const webhook = await createWebhook({ retry_schedule: [] })
    // Simulates a host name that now resolves to this address.
    await db.system('outgoing_webhooks').where({ id: webhook.id }).update({ url: 'http://169.254.169.254/' })
    const delivery = await ended(await raise(webhook))
    assert.match(delivery.error, /egress_refused/)
  })

  it('give up on a slow receiver after the timeout', async () => {
    receiver.behave('hang')
    const delivery = await ended(await raise(await createWebhook({ timeout_ms: 500, retry_schedule: [] })))
    assert.match(delivery.error, /^timeout: .*500 ms/)
  })

  it('wait for Retry-After, unless a user retries at once', async () => {
    receiver.behave({ status: 503, headers: { 'retry-after': '3600' } })
    const id = await raise(await createWebhook())
    const { next_attempt_at } = await waiting(id)
    const seconds = (Date.parse(next_attempt_at) - Date.now()) / 1_000
    assert.ok(seconds > 3_500 && seconds < 4_000, `${seconds} s`)
    assert.equal((await app('POST', `/deliveries/${id}/retry`)).status, 200)
    assert.equal((await ended(id)).status, 'succeeded')
  })

  it('stop when they are cancelled, and their workflow ends', async () => {
    receiver.behave(500)
    const id = await raise(await createWebhook({ retry_schedule: [3_600] }))
    await waiting(id)
    assert.equal((await app('POST', `/deliveries/${id}/cancel`)).body.status, 'cancelled')
    const result = await suite.worker.client.workflow.getHandle(`delivery:${id}`).result()
    assert.deepEqual([result.status, receiver.received.length], ['cancelled', 1])
  })

  it('abort the request when they are cancelled during an attempt', async () => {
    receiver.behave(500, 'hang')
    const id = await raise(await createWebhook({ retry_schedule: [1, 3_600] }))
    await until(async () => receiver.received.length === 2)
    await app('POST', `/deliveries/${id}/cancel`)
    const before = receiver.hungUp()
    await until(async () => receiver.hungUp() > before)
    const { status, attempts } = await get(id)
    assert.deepEqual([status, attempts.at(-1).status], ['cancelled', 'unknown'])
  })

  it('wait while the endpoint is disabled, and continue when it is enabled', async () => {
    receiver.behave(500)
    const webhook = await createWebhook({ retry_schedule: [3_600, 3_600] })
    const id = await raise(webhook)
    await waiting(id)
    await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    assert.equal((await get(id)).status, 'held')
    assert.equal((await suite.worker.client.workflow.getHandle(`delivery:${id}`).result()).status, 'held')
    await app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    assert.equal((await ended(id)).status, 'succeeded')
    assert.equal((await get(id)).attempt_count, 2)
  })

  it('carry both signatures during a rotation of the secret', async () => {
    const webhook = await createWebhook()
    const { body: rotated } = await app('POST', `/webhooks/outgoing/${webhook.id}/rotate-secret`)
    const shown = async () =>
      (await app('GET', `/webhooks/outgoing/${webhook.id}`)).body.previous_secret_expires_at
    const hours = (Date.parse(await shown()) - Date.now()) / 3_600_000
    assert.ok(hours > 23 && hours <= 24, `${hours} hours`)
    await ended(await raise(webhook))
    const { headers, body } = receiver.received[0]!
    for (const secret of [webhook.secret, rotated.secret]) new Webhook(secret).verify(body, headers)
    await app('POST', `/webhooks/outgoing/${webhook.id}/rotate-secret`, { overlap_hours: 0 })
    assert.equal(await shown(), null)
    receiver.behave()
    await ended(await raise(webhook))
    const after = receiver.received[0]!
    assert.throws(() => new Webhook(rotated.secret).verify(after.body, after.headers))
  })

  it('can be tested with an example before the endpoint is enabled', async () => {
    const webhook = await createWebhook({ events: ['contact.updated'] })
    await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const { status, body } = await app('POST', `/webhooks/outgoing/${webhook.id}/test`)
    assert.equal(status, 200)
    assert.equal((await ended(body.id)).status, 'succeeded')
    const sent = JSON.parse(receiver.received[0]!.body)
    assert.deepEqual([sent.event, sent.test, sent.data.object], ['contact.updated', true, 'contact'])
  })

  it('are sent once, however often they are started', async () => {
    const webhook = await createWebhook()
    const id = await raise(webhook)
    await ended(id)
    const row = await db.system('deliveries').where({ id }).first()
    const queue = deliveriesQueue({
      relayId: randomUUID(),
      taskQueue: `${suite.worker.taskQueue}-deliveries`,
      attributes: new NamespaceAttributes(testLog),
    })
    await queue.start(suite.worker.client, { ...row, webhook_name: 'Receiver', event_name: webhook.event })
    await new Promise((resolve) => setTimeout(resolve, 500))
    assert.equal(receiver.received.length, 1)
  })

  it('are sent if their endpoint was disabled and enabled before the relay recorded an earlier start', async () => {
    const webhook = await createWebhook()
    await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const id = await raise(webhook)
    const before = await db.system('deliveries').where({ id }).first()
    // Held, so that no relay claims it, as if it were claimed only after the start was recorded.
    await db.system('deliveries').where({ id }).update({ status: 'queued', held_for: null, releases: 1 })
    const queue = deliveriesQueue({
      relayId: randomUUID(),
      taskQueue: `${suite.worker.taskQueue}-deliveries`,
      attributes: new NamespaceAttributes(testLog),
    })
    const row = { ...before, webhook_name: 'Receiver', event_name: webhook.event }
    await queue.started!(db.system, [row])
    await queue.refused!(db, row, 'too late')
    assert.equal((await get(id)).status, 'queued')
    await app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    assert.equal((await ended(id)).status, 'succeeded')
  })

  it('record the result of an attempt as unknown if the worker died in it', async () => {
    const webhook = await createWebhook()
    const id = await suite.interrupt(webhook)
    const { attempts } = await ended(id)
    assert.deepEqual(
      attempts.map((one: { status: string }) => one.status),
      ['unknown', 'succeeded'],
    )
  })

  it('occupy no slot while they wait: later deliveries are sent', async () => {
    receiver.behave(500)
    const webhook = await createWebhook({ retry_schedule: [3_600], concurrency: 1 })
    const first = await raise(webhook)
    await waiting(first)
    assert.equal((await ended(await raise(webhook))).status, 'succeeded')
    assert.equal((await app('POST', `/deliveries/${first}/retry`)).status, 200)
    assert.equal((await ended(first)).status, 'succeeded')
  })

  it('take a slot for each retry, in turn with new deliveries', async () => {
    receiver.behave(500, 500, 500, 500)
    const webhook = await createWebhook({ retry_schedule: [1], concurrency: 2 })
    const retried = await Promise.all([1, 2, 3, 4].map(() => raise(webhook)))
    await Promise.all(retried.map(waiting))
    receiver.answerAfter(300)
    const all = [...retried, ...(await Promise.all([1, 2, 3, 4].map(() => raise(webhook))))]
    for (const id of all) assert.equal((await ended(id)).status, 'succeeded')
    assert.equal(receiver.mostAtOnce(), 2)
  })

  it('that are due are sent without a pause, interleaved with new ones', async () => {
    const count = 8
    receiver.behave(...Array.from({ length: count }, () => 503))
    const webhook = await createWebhook({ retry_schedule: [3_600], concurrency: count })
    const due = await Promise.all(Array.from({ length: count }, () => raise(webhook)))
    await Promise.all(due.map(waiting))
    assert.equal((await app('PATCH', `/webhooks/outgoing/${webhook.id}`, { concurrency: 1 })).status, 200)
    receiver.answerAfter(20)
    await Promise.all(due.map((id) => app('POST', `/deliveries/${id}/retry`)))
    const later = await Promise.all([1, 2, 3].map(() => raise(webhook)))
    for (const id of [...due, ...later]) assert.equal((await ended(id)).status, 'succeeded')
    assert.equal(receiver.mostAtOnce(), 1)
  })

  for (const verb of ['terminate', 'cancel'] as const)
    it(`end and free their slot when an operator ${verb}s their workflow`, async () => {
      receiver.behave(500)
      const webhook = await createWebhook({ retry_schedule: [3_600], concurrency: 1 })
      const id = await raise(webhook)
      await waiting(id)
      const workflow = suite.worker.client.workflow.getHandle(`delivery:${id}`)
      await workflow[verb]()
      await assert.rejects(workflow.result())
      const next = await raise(webhook)
      await new Sweep({
        db,
        client: suite.worker.client,
        taskQueue: suite.worker.taskQueue,
        log: testLog,
      }).once('0 seconds')
      assert.equal((await get(id)).status, 'cancelled')
      assert.equal((await ended(next)).status, 'succeeded')
      assert.equal(receiver.received.length, 2)
    })

  it('are cancelled if an operator cancels their workflow during an attempt that then fails', async () => {
    receiver.behave(500, 500)
    const webhook = await createWebhook({ retry_schedule: [1, 3_600] })
    const id = await raise(webhook)
    await until(async () => receiver.received.length === 1)
    const answer = receiver.hold()
    await until(async () => receiver.received.length === 2)
    const workflow = suite.worker.client.workflow.getHandle(`delivery:${id}`)
    await workflow.cancel()
    await until(async () => {
      const { pendingActivities } = (await workflow.describe()).raw
      return pendingActivities?.[0]?.state === CANCEL_REQUESTED
    })
    answer()
    await assert.rejects(workflow.result())
    assert.equal((await workflow.describe()).status.name, 'CANCELLED')
  })
})
