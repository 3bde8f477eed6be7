import assert from 'node:assert/strict'
import { insertEvents } from '../../db/events/outbox.ts'
import { advanceReplay } from '../../db/outgoing/replays.ts'
import { testActor } from '../support/database.ts'
import { until } from '../support/until.ts'
import { withDeliveries } from '../support/with-deliveries.ts'

describe('a replay of an outgoing webhook', () => {
  const on = withDeliveries()

  const since = () => new Date(Date.now() - 3_600_000).toISOString()
  const sent = () => on.receiver.received.map(({ body }) => JSON.parse(body).data.n)
  const raise = (name: string, numbers: number[]) =>
    on.db.tenant(on.api.organizationId, testActor, (tx) =>
      insertEvents(
        tx,
        numbers.map((n) => ({ name, data: { n } })),
      ),
    )
  const matched = (name: string) =>
    until(async () => !(await on.db.system('events').where({ name, matched_at: null }).first('id')))
  const replay = (id: string, body: object) => on.app('POST', `/webhooks/outgoing/${id}/replays`, body)
  const ended = (webhook: string, id: string) =>
    until(async () => {
      const { body } = await on.app('GET', `/webhooks/outgoing/${webhook}/replays/${id}`)
      return body.ended_at && body
    })

  it('sends what failed and what was missed, once, after a dry run that only counts', async () => {
    const webhook = await on.createWebhook({ retry_schedule: [], concurrency: 1 })
    // These events were raised before the subscription.
    await raise('missed.event', [1, 2])
    await matched('missed.event')
    on.receiver.behave(500, 204)
    await on.ended(await on.raise(webhook))
    await on.ended(await on.raise(webhook))
    await on.app('PATCH', `/webhooks/outgoing/${webhook.id}`, { events: [webhook.event, 'missed.*'] })
    on.receiver.behave()
    const dry = await replay(webhook.id, { since: since(), dry_run: true })
    assert.deepEqual([dry.status, dry.body.object, dry.body.total], [200, 'replay_preview', 3])
    const failed = await replay(webhook.id, { since: since(), include: ['failed'], dry_run: true })
    assert.equal(failed.body.total, 1)
    assert.equal(on.receiver.received.length, 0)
    const { status, body } = await replay(webhook.id, { since: since() })
    assert.deepEqual([status, body.status, body.total], [201, 'running', 3])
    const done = await ended(webhook.id, body.id)
    assert.deepEqual([done.status, done.created, done.skipped], ['completed', 3, 0])
    await until(async () => on.receiver.received.length === 3)
    assert.deepEqual(sent().sort(), [1, 2, undefined])
    const again = await replay(webhook.id, { since: since() })
    assert.equal(again.body.total, 0)
    assert.equal((await ended(webhook.id, again.body.id)).created, 0)
  })

  it('sends only what the condition of the webhook selects', async () => {
    await raise('some.event', [1, 2, 3])
    await matched('some.event')
    const webhook = await on.createWebhook({ events: ['some.event'], when: '{{ data.n > 1 }}' })
    const { body } = await replay(webhook.id, { since: since() })
    const done = await ended(webhook.id, body.id)
    assert.deepEqual([done.total, done.created, done.skipped], [3, 2, 1])
  })

  it('is paused, resumed by another worker page after page, and stopped', async () => {
    await on.worker.stop()
    await on.db.tenant(on.api.organizationId, testActor, (tx) =>
      insertEvents(
        tx,
        Array.from({ length: 1_200 }, (_, n) => ({ name: 'paged.event', data: { n } })),
      ),
    )
    await on.db.system('events').where({ name: 'paged.event' }).update({ matched_at: new Date() })
    const webhook = await on.createWebhook({ events: ['paged.event'] })
    const { body } = await replay(webhook.id, { since: since() })
    assert.equal(body.total, 1_200)
    const path = `/webhooks/outgoing/${webhook.id}/replays/${body.id}`
    const act = async (verb: string) => (await on.app('POST', `${path}/${verb}`)).body.status
    const advance = () => on.db.tenant(on.api.organizationId, testActor, (tx) => advanceReplay(tx, body.id))
    const created = async () => (await on.app('GET', path)).body.created
    const second = await replay(webhook.id, { since: since() })
    assert.equal(second.status, 409)
    await advance()
    const page = await created()
    assert.ok(page > 0 && page < 1_200, `${page}`)
    assert.equal(await act('pause'), 'paused')
    await advance()
    assert.equal(await created(), page)
    assert.equal(await act('resume'), 'running')
    await advance()
    assert.ok((await created()) > page)
    assert.equal(await act('stop'), 'stopped')
    await advance()
    assert.ok((await created()) < 1_200)
    assert.equal((await on.app('POST', `${path}/resume`)).status, 409)
    const { count } = await on.db
      .system('deliveries')
      .where({ webhook_id: webhook.id })
      .count({ count: '*' })
      .first<{ count: number }>()
    assert.equal(count, await created())
  })

  it('refuses an empty period and an inactive webhook', async () => {
    const webhook = await on.createWebhook()
    const future = await replay(webhook.id, { since: '2999-01-01T00:00:00Z' })
    assert.deepEqual([future.status, future.body.detail[0].loc], [422, ['body', 'since']])
    await on.app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const { status, body } = await replay(webhook.id, { since: since() })
    assert.deepEqual([status, body.error.message], [409, 'the webhook is inactive'])
  })
})
