import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { claimDeliveries } from '../../../db/outgoing/queue.ts'
import { testActor } from '../../support/database.ts'
import { withApp } from '../../support/with-api.ts'

const RELAY = randomUUID()

/** The events of an endpoint, and the deliveries of a filtered list. */
describe('the condition of a webhook, and the filters of its log', () => {
  const suite = withApp()
  let { db, api, app } = suite
  before(() => {
    ;({ db, api, app } = suite)
  })

  const create = (values: object) =>
    app('POST', '/webhooks/outgoing', { name: 'Test', url: 'https://example.com/', ...values })
  async function raise(events: { name: string; data: Record<string, unknown>; previous?: object }[]) {
    await db.tenant(api.organizationId, testActor, (tx) => insertEvents(tx, events as never))
    while ((await matchEvents(db.system)).more);
  }
  const listed = async (path: string) => (await app('GET', path)).body

  it('delivers the events whose data fits', async () => {
    const { body: large } = await create({ events: ['deal.*'], when: '{{ data.amount > 1000 }}' })
    const { body: moved } = await create({ events: ['deal.*'], when: '{{ previous.stage == "lead" }}' })
    const { body: all } = await create({ events: ['deal.*'] })
    await raise([
      { name: 'deal.created', data: { id: randomUUID(), amount: '2500.00' } },
      { name: 'deal.created', data: { id: randomUUID(), amount: '10.00' } },
      { name: 'deal.updated', data: { id: randomUUID() }, previous: { stage: 'lead' } },
    ])
    const names = async ({ id }: { id: string }) =>
      (await listed(`/webhooks/outgoing/${id}/deliveries`)).data.map((one: { event: string }) => one.event)
    assert.deepEqual(await names(large), ['deal.created'])
    assert.deepEqual(await names(moved), ['deal.updated'])
    assert.equal((await names(all)).length, 3)
    const changed = await app('PATCH', `/webhooks/outgoing/${large.id}`, { when: null })
    assert.equal(changed.body.when, null)
    for (const { id } of [large, moved, all]) await app('DELETE', `/webhooks/outgoing/${id}`)
  })

  it('selects right over many events and webhooks', async () => {
    const hooks = []
    for (let n = 0; n < 3; n++)
      hooks.push((await create({ events: ['many.made'], when: `{{ data.n == ${n} }}` })).body)
    await raise(Array.from({ length: 130 }, (_, n) => ({ name: 'many.made', data: { n: n % 4 } })))
    const totals = []
    for (const { id } of hooks) totals.push((await listed(`/webhooks/outgoing/${id}/deliveries`)).total)
    assert.deepEqual(totals, [33, 33, 32])
    for (const { id } of hooks) await app('DELETE', `/webhooks/outgoing/${id}`)
  })

  for (const [what, when] of Object.entries({
    'without a placeholder': 'true',
    'of another member': '{{ record.amount > 5 }}',
    'that does not parse': '{{ data.amount > }',
    'that is not closed': '{{ data.amount | nonsense }}',
  }))
    it(`refuses a condition ${what}`, async () => {
      const { status, body } = await create({ events: ['*'], when })
      assert.equal(status, 422, JSON.stringify(body))
      assert.deepEqual(body.detail[0].loc, ['body', 'when'])
    })

  it('claims the deliveries of an ordered webhook one by one for each record', async () => {
    const { body } = await create({ events: ['order.step'], ordered: true })
    const [a, b] = [randomUUID(), randomUUID()]
    await raise([a, a, b, a].map((id) => ({ name: 'order.step', data: { id } })))
    const claimed = (await claimDeliveries(db.system, RELAY, 100)).filter(
      ({ webhook_id }) => webhook_id === body.id,
    )
    assert.equal(claimed.length, 2)
    await app('DELETE', `/webhooks/outgoing/${body.id}`)
  })

  it('filters by event, status, record, time, code and webhook', async () => {
    const { body: one } = await create({ events: ['log.a', 'log.b'] })
    const { body: two } = await create({ events: ['log.a'] })
    const id = randomUUID()
    await raise([
      { name: 'log.a', data: { id } },
      { name: 'log.b', data: { id: randomUUID() } },
    ])
    const [old] = (await listed(`/webhooks/outgoing/${one.id}/deliveries?event=log.b`)).data
    await db.system('delivery_attempts').insert([
      { organization_id: api.organizationId, delivery_id: old.id, attempt: 1, http_status: 429 },
      { organization_id: api.organizationId, delivery_id: old.id, attempt: 2, http_status: 503 },
      { organization_id: api.organizationId, delivery_id: old.id, attempt: 3 },
    ])
    const total = async (query: string, path = `/webhooks/outgoing/${one.id}/deliveries`) =>
      (await listed(`${path}?${query}`)).total
    const now = encodeURIComponent(new Date(Date.now() - 60_000).toISOString())
    const counts = [
      await total('status=queued'),
      await total('status=failed'),
      await total(`record_id=${id}`),
      await total(`from=${now}`),
      await total(`to=${now}`),
      await total('code=503'),
      await total('code=5xx'),
      await total('code=429'),
      await total('event=log.*'),
      await total('event=note.*'),
      await total('event=*'),
      await total(`record_id=${id}`, '/deliveries'),
      await total(`webhook_id=${two.id}`, '/deliveries'),
    ]
    assert.deepEqual(counts, [2, 0, 1, 2, 0, 1, 1, 0, 2, 0, 2, 2, 1])
    const { status, body } = await app('GET', '/deliveries?code=abc&event=log')
    assert.deepEqual(
      [status, body.detail.map(({ loc }: { loc: string[] }) => loc.join('.')).sort()],
      [422, ['query.code', 'query.event']],
    )
    const codes = (await listed(`/webhooks/outgoing/${one.id}/deliveries`)).data.map(
      ({ event, http_status }: { event: string; http_status: number | null }) => [event, http_status],
    )
    assert.deepEqual(codes, [
      ['log.b', 503],
      ['log.a', null],
    ])
  })
})
