import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import { releaseForQuota } from '../../../db/outgoing/moves/holds.ts'
import { startApi } from '../../support/api.ts'
import { testActor } from '../../support/database.ts'
import { planted } from '../../support/planted.ts'
import { signIn } from '../../support/session.ts'
import { withApp } from '../../support/with-api.ts'

const HEADER = planted('hunter2hunter2')

describe('/app/webhooks/outgoing', () => {
  const suite = withApp()
  let { db, api, app } = suite
  before(() => {
    ;({ db, api, app } = suite)
  })

  const hook = { name: 'Billing', url: 'https://example.com/hook', events: ['contact.created'] }
  const create = async (values: object = {}) => {
    const { status, body } = await app('POST', '/webhooks/outgoing', { ...hook, ...values })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  /** Raises an event of the webhook and runs the relay. @returns the listed delivery. */
  async function deliver(webhook: { id: string }, name: string) {
    await db.tenant(api.organizationId, testActor, (tx) => insertEvents(tx, [{ name, data: { id: 'x' } }]))
    await matchEvents(db.system)
    return (await app('GET', `/webhooks/outgoing/${webhook.id}/deliveries`)).body.data[0]
  }

  it('returns the secret only once, and only the names of headers', async () => {
    const made = await create({ headers: { 'X-Api-Key': HEADER } })
    assert.match(made.secret, /^whsec_/)
    assert.deepEqual(
      [made.object, made.status, made.header_names],
      ['outgoing_webhook', 'Active', ['x-api-key']],
    )
    const stored = await db.system('outgoing_webhooks').where({ id: made.id }).first()
    const shown = (await app('GET', `/webhooks/outgoing/${made.id}`)).body
    const list = (await app('GET', '/webhooks/outgoing')).body
    assert.ok(list.data.some(({ id }: { id: string }) => id === made.id))
    for (const secret of [made.secret, HEADER])
      assert.ok(!JSON.stringify([stored, shown, list]).includes(secret))
  })

  it('sends its headers to no other server than they were given for', async () => {
    const { id, url } = await create({ headers: { 'X-Api-Key': HEADER } })
    const patch = (body: object) => app('PATCH', `/webhooks/outgoing/${id}`, body)
    const elsewhere = { url: 'https://elsewhere.example.net/' }
    const { status, body } = await patch(elsewhere)
    assert.deepEqual([status, body.detail[0].loc], [422, ['body', 'headers']])
    assert.match(body.detail[0].hint, /x-api-key/)
    assert.equal((await app('GET', `/webhooks/outgoing/${id}`)).body.url, url)
    assert.deepEqual((await patch({ url: new URL('/other', url).href })).body.header_names, ['x-api-key'])
    assert.deepEqual((await patch({ ...elsewhere, headers: {} })).body.header_names, [])
    assert.equal((await patch({ url })).status, 200)
  })

  it('is updated, deactivated, activated and deleted', async () => {
    const { id } = await create()
    const changed = await app('PATCH', `/webhooks/outgoing/${id}`, { timeout_ms: 2_000, status: 'Inactive' })
    assert.deepEqual([changed.body.timeout_ms, changed.body.status], [2_000, 'Inactive'])
    assert.equal((await app('POST', `/webhooks/outgoing/${id}/activate`)).body.status, 'Active')
    assert.equal((await app('POST', `/webhooks/outgoing/${id}/deactivate`)).body.status, 'Inactive')
    assert.equal((await app('DELETE', `/webhooks/outgoing/${id}`)).body.deleted, true)
    assert.equal((await app('GET', `/webhooks/outgoing/${id}`)).status, 404)
  })

  for (const [what, values] of Object.entries({
    'plain http': { url: 'http://example.com/' },
    'credentials in the URL': { url: 'https://user:pass@example.com/' },
    localhost: { url: 'https://localhost/' },
    'a private address': { url: 'https://10.0.0.1/' },
    'a private address in hexadecimal': { url: 'https://0x7f.1/' },
    'a mapped private address': { url: 'https://[::ffff:169.254.169.254]/' },
    'an unknown event': { events: ['everything'] },
    'a misspelt event': { events: ['contact.create'] },
    'a wildcard in the wrong place': { events: ['*.created'] },
    'no event': { events: [] },
    'a header with a line break': { headers: { 'x-a': 'a\r\nx-b: b' } },
    'a header of the signature': { headers: { 'Webhook-Signature': 'v1,x' } },
    'a timeout over 15 s': { timeout_ms: 15_001 },
    'a schedule of 21 retries': { retry_schedule: Array(21).fill(1) },
    'a short secret': { secret: 'whsec_c2hvcnQ=' },
    'an unknown option': { ordering: true },
  }))
    it(`refuses ${what}`, async () => {
      const { status, body } = await app('POST', '/webhooks/outgoing', { ...hook, ...values })
      assert.equal(status, 422, JSON.stringify(body))
      assert.equal(body.detail.length, 1)
    })

  it('suggests an event for an unknown name', async () => {
    const meant = { 'contact.create': 'contact.created', 'contacts.*': 'contact.*', 'Deal.won': 'deal.won' }
    for (const [wrong, right] of Object.entries(meant)) {
      const { body } = await app('POST', '/webhooks/outgoing', { ...hook, events: [wrong] })
      assert.equal(body.error.hint, `did you mean ${right}?`)
    }
  })

  it('supports the wildcards <entity>.* and *', async () => {
    const [contacts, all, raised] = [
      await create({ events: ['contact.*'] }),
      await create({ events: ['*', 'contact.created'] }),
      await create({ events: ['invoice.*'] }),
    ]
    const got = async (webhook: { id: string }) =>
      (await app('GET', `/webhooks/outgoing/${webhook.id}/deliveries`)).body.data.map(
        (delivery: { event: string }) => delivery.event,
      )
    for (const name of ['contact.created', 'contactless.paid', 'invoice.paid']) await deliver(all, name)
    assert.deepEqual(await got(contacts), ['contact.created'])
    assert.deepEqual(await got(all), ['invoice.paid', 'contactless.paid', 'contact.created'])
    assert.deepEqual(await got(raised), ['invoice.paid'])
    const test = await app('POST', `/webhooks/outgoing/${contacts.id}/test`)
    assert.deepEqual([test.status, test.body.event], [200, 'contact.created'])
    for (const { id } of [contacts, all, raised]) await app('DELETE', `/webhooks/outgoing/${id}`)
  })

  it('refuses a URL together with everything else that is wrong, on creation and change', async () => {
    const webhook = await create()
    const wrong = { url: 'http://10.0.0.1/', timeout_ms: 1, headers: { 'X-Team': `${HEADER}\n` } }
    for (const refused of [
      await app('POST', '/webhooks/outgoing', { ...hook, ...wrong }),
      await app('PATCH', `/webhooks/outgoing/${webhook.id}`, wrong),
    ]) {
      assert.equal(refused.status, 422)
      assert.deepEqual(refused.body.detail.map(({ loc }: { loc: string[] }) => loc.slice(1).join()).sort(), [
        'headers,X-Team',
        'timeout_ms',
        'url',
      ])
      assert.doesNotMatch(
        JSON.stringify(refused.body),
        new RegExp(HEADER),
        'a header value can be a credential',
      )
    }
    await app('DELETE', `/webhooks/outgoing/${webhook.id}`)
  })

  it('accepts private addresses and http if the operator allows them', async () => {
    const only = await startApi(db, { EGRESS_ONLY: 'hooks.example.com, 192.0.2.0/24' })
    const listed = await signIn(db, only)
    const urls = ['https://hooks.example.com/a', 'https://example.com/a', 'https://8.8.8.8/']
    const statuses = []
    for (const url of urls)
      statuses.push((await listed('POST', '/webhooks/outgoing', { ...hook, url })).status)
    await only.close()
    assert.deepEqual(statuses, [201, 422, 422])
    const open = await startApi(db, { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '10.0.0.0/8' })
    const inside = await signIn(db, open)
    const { status } = await inside('POST', '/webhooks/outgoing', { ...hook, url: 'http://10.0.0.1/' })
    assert.equal(status, 201)
    await open.close()
  })

  it('is accessible to admins of its organization only', async () => {
    const { id } = await create()
    const other = await startApi(db)
    const stranger = await signIn(db, other)
    const unknown = await stranger('GET', `/webhooks/outgoing/${randomUUID()}`)
    const foreign = await stranger('GET', `/webhooks/outgoing/${id}`)
    assert.equal(foreign.status, 404)
    assert.equal(foreign.body.error.message, unknown.body.error.message)
    const member = await signIn(db, api, 'member')
    assert.equal((await member('GET', `/webhooks/outgoing/${id}`)).status, 200)
    assert.equal((await member('POST', '/webhooks/outgoing', hook)).status, 403)
    await other.close()
  })

  it('is limited by the plan: five on Free', async () => {
    const free = await startApi(db)
    const owner = await signIn(db, free)
    await db.system('organizations').where({ id: free.organizationId }).update({ plan: 'free' })
    for (let n = 0; n < 5; n++) assert.equal((await owner('POST', '/webhooks/outgoing', hook)).status, 201)
    const { status, body } = await owner('POST', '/webhooks/outgoing', hook)
    assert.deepEqual([status, body.error.type], [403, 'plan_limit'])
    await free.close()
  })

  it('holds deliveries while inactive, and queues them on activation', async () => {
    const webhook = await create({ events: ['invoice.paid'] })
    const queued = await deliver(webhook, 'invoice.paid')
    assert.deepEqual([queued.status, queued.event], ['queued', 'invoice.paid'])
    await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    await deliver(webhook, 'invoice.paid')
    const list = () => app('GET', `/webhooks/outgoing/${webhook.id}/deliveries`)
    const held = (await list()).body.data
    assert.deepEqual(
      held.map((one: { status: string; held_for: string }) => [one.status, one.held_for]),
      [
        ['held', 'endpoint'],
        ['held', 'endpoint'],
      ],
    )
    await app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    for (const one of (await list()).body.data) assert.deepEqual([one.status, one.held_for], ['queued', null])
    assert.equal((await list()).body.total, 2)
  })

  it('holds deliveries above the monthly quota until the plan allows them', async () => {
    const webhook = await create({ events: ['quota.reached'] })
    const set = (limit: number) =>
      db
        .system('organizations')
        .where({ id: api.organizationId })
        .update({ limits: { outgoing_per_month: limit } })
    await set(1)
    const first = await deliver(webhook, 'quota.reached')
    const second = await deliver(webhook, 'quota.reached')
    assert.deepEqual([first.status, second.status, second.held_for], ['queued', 'held', 'quota'])
    await releaseForQuota(db.system)
    const look = async () => (await app('GET', `/deliveries/${second.id}`)).body.status
    assert.equal(await look(), 'held')
    await set(2)
    await Promise.all([releaseForQuota(db.system), releaseForQuota(db.system)])
    assert.equal(await look(), 'queued')
    const charged = await db
      .system('limit_months')
      .where({ organization_id: api.organizationId, subject: 'outgoing' })
      .first('used')
    assert.equal(charged.used, 2)
    await db.system('organizations').where({ id: api.organizationId }).update({ limits: {} })
  })

  it('cancels open deliveries and resends ended ones', async () => {
    const webhook = await create({ events: ['order.placed'] })
    const { id } = await deliver(webhook, 'order.placed')
    assert.equal((await app('POST', `/deliveries/${id}/resend`)).status, 409)
    assert.equal((await app('POST', `/deliveries/${id}/retry`)).status, 200, 'it is due')
    const cancelled = await app('POST', `/deliveries/${id}/cancel`)
    assert.deepEqual([cancelled.status, cancelled.body.status], [200, 'cancelled'])
    assert.equal((await app('POST', `/deliveries/${id}/cancel`)).status, 409)
    const again = await app('POST', `/deliveries/${id}/resend`)
    assert.notEqual(again.body.id, id)
    assert.deepEqual(
      [again.body.generation, again.body.event_id, again.body.status],
      [1, cancelled.body.event_id, 'queued'],
    )
    assert.equal((await app('GET', `/deliveries/${randomUUID()}`)).status, 404)
  })

  it('resends an event once for concurrent requests', async () => {
    const webhook = await create({ events: ['order.lost'] })
    const { id } = await deliver(webhook, 'order.lost')
    await app('POST', `/deliveries/${id}/cancel`)
    const first = (await app('POST', `/deliveries/${id}/resend`)).body
    await app('POST', `/deliveries/${first.id}/cancel`)
    const answers = await Promise.all(
      [id, first.id, id, first.id].map((each) => app('POST', `/deliveries/${each}/resend`)),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409])
    const refused = answers.find(({ status }) => status === 409)!
    assert.equal(refused.body.error.message, 'the event is already being resent')
  })

  it('pages through deliveries', async () => {
    const webhook = await create({ events: ['page.turned'] })
    for (let n = 0; n < 3; n++) await deliver(webhook, 'page.turned')
    const path = `/webhooks/outgoing/${webhook.id}/deliveries`
    const first = (await app('GET', `${path}?limit=2&status=queued`)).body
    assert.deepEqual([first.data.length, first.has_more, first.total], [2, true, 3])
    const second = (await app('GET', `${path}?limit=2&status=queued&cursor=${first.next_cursor}`)).body
    assert.deepEqual([second.data.length, second.has_more], [1, false])
    assert.equal((await app('GET', `${path}?cursor=${first.next_cursor}`)).status, 400)
  })

  it('refuses a test of an event that a subscription refuses', async () => {
    const { id } = await create()
    for (const event of ['contact.create', 'everything', 'contact.*', '*']) {
      const { status, body } = await app('POST', `/webhooks/outgoing/${id}/test`, { event })
      assert.deepEqual(
        [status, body.error?.param ?? body.detail[0].loc.join('.')],
        [422, 'body.event'],
        event,
      )
    }
    assert.equal((await app('POST', `/webhooks/outgoing/${id}/test`, { event: 'lead.scored' })).status, 200)
  })

  it('explains why a delivery cannot be paused, resumed, rescheduled or retargeted', async () => {
    const webhook = await create({ events: ['order.moved'] })
    const { id } = await deliver(webhook, 'order.moved')
    const says = async (verb: string, body?: object) => {
      const { status, body: answer } = await app('POST', `/deliveries/${id}/${verb}`, body)
      return [status, answer.error?.message]
    }
    assert.deepEqual(await says('resume'), [409, 'the delivery is not paused'])
    assert.deepEqual(await says('retry'), [200, undefined], 'its first attempt waits for a slot')
    assert.deepEqual(await says('reschedule', { at: '2020-01-01T00:00:00Z' }), [422, 'at: is in the past'])
    assert.deepEqual(await says('reschedule', { at: '2999-01-01T00:00:00Z' }), [
      422,
      'at: is more than 30 days ahead',
    ])
    assert.deepEqual(await says('retarget', { webhook_id: webhook.id }), [
      422,
      'webhook_id: is the webhook of the delivery',
    ])
    assert.deepEqual(await says('retarget', { webhook_id: randomUUID() }), [
      422,
      'webhook_id: is not an outgoing webhook',
    ])
    assert.deepEqual(await says('pause'), [200, undefined])
    assert.deepEqual(await says('pause'), [200, undefined])
    assert.deepEqual(await says('retry'), [409, 'the delivery is held'])
    assert.deepEqual(await says('cancel'), [200, undefined])
    for (const [verb, body] of [['pause'], ['reschedule', { at: '2999-01-01T00:00:00Z' }]] as const)
      assert.deepEqual(await says(verb, body), [409, 'the delivery has already been cancelled'])
  })

  it('holds a resumed delivery for its inactive webhook, or for the quota', async () => {
    const webhook = await create({ events: ['order.kept'] })
    const { id } = await deliver(webhook, 'order.kept')
    await app('POST', `/deliveries/${id}/pause`)
    await app('POST', `/webhooks/outgoing/${webhook.id}/deactivate`)
    const resumed = await app('POST', `/deliveries/${id}/resume`)
    assert.deepEqual([resumed.body.status, resumed.body.held_for], ['held', 'endpoint'])
    await app('POST', `/webhooks/outgoing/${webhook.id}/activate`)
    assert.equal((await app('GET', `/deliveries/${id}`)).body.status, 'queued')
    const limits = (values: object) =>
      db.system('organizations').where({ id: api.organizationId }).update({ limits: values })
    await limits({ outgoing_per_month: 0 })
    const over = await deliver(webhook, 'order.kept')
    await app('POST', `/deliveries/${over.id}/pause`)
    const still = await app('POST', `/deliveries/${over.id}/resume`)
    assert.deepEqual([still.body.status, still.body.held_for], ['held', 'quota'])
    await limits({})
  })
})
