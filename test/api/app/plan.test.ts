import assert from 'node:assert/strict'
import { matchEvents } from '../../../db/events/match.ts'
import { insertEvents } from '../../../db/events/outbox.ts'
import type { PlanChangeRule } from '../../../db/model/access/plan-change-rule.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createOrganization, testActor } from '../../support/database.ts'
import { type App, sessionHeaders, signIn } from '../../support/session.ts'
import { withApi } from '../../support/with-api.ts'

describe('/app/organization/plan', () => {
  const suite = withApi({ PLAN_CHANGES: 'open', ALLOW_INSECURE_WEBHOOKS: 'true' })
  let app: App
  let second: TestApi
  before(async () => {
    app = await signIn(suite.db, suite.api)
    second = await startApi(suite.db)
  })
  after(() => second?.close())
  beforeEach(async () => {
    const { db, api } = suite
    const organization_id = api.organizationId
    for (const table of [
      'incoming_webhooks',
      'outgoing_webhooks',
      'limit_months',
      'limit_windows',
      'audit_log',
    ])
      await db.system(table).where({ organization_id }).delete()
    await db.system('organizations').where({ id: organization_id }).update({ plan: 'free', limits: '{}' })
  })

  const change = (plan: unknown) => app('PUT', '/organization/plan', { plan })
  const changed = async (plan: string) => {
    const { status, body } = await change(plan)
    assert.deepEqual([status, body.object, body.plan], [200, 'organization', plan], JSON.stringify(body))
  }
  const use = (subject: string, used: number) =>
    suite.db.system('limit_months').insert({
      organization_id: suite.api.organizationId,
      subject,
      used,
      window_start: suite.db.system.raw(`date_trunc('month', now(), 'UTC')`),
      ends_at: suite.db.system.raw(`date_trunc('month', now(), 'UTC') + interval '1 month'`),
    })
  const incoming = async (name: string, rate_limit = 10) => {
    const { status, body } = await app('POST', '/webhooks/incoming', { name, rate_limit })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }

  it('sets the limits of keys at the very next request of every process, up and down', async () => {
    const { api } = suite
    const limits = async () => {
      const answers = [api, second].map(({ request }) => request('GET', '/v1/me', { key: api.key }))
      return (await Promise.all(answers)).map(({ status, headers, body }) => [
        status,
        headers.get('x-ratelimit-limit'),
        body.organization?.plan,
      ])
    }
    const both = (...expected: unknown[]) => [expected, expected]
    assert.deepEqual(await limits(), both(200, '120', 'free'))
    await changed('enterprise')
    // After this the process holds a reserve of requests as large as the lower limit.
    for (let i = 0; i < 140; i++) await api.request('GET', '/v1/me')
    assert.deepEqual(await limits(), both(200, '6000', 'enterprise'))
    await changed('free')
    assert.deepEqual(await limits(), both(429, '120', undefined))
    await changed('professional')
    assert.deepEqual(await limits(), both(200, '600', 'professional'))
  })

  it('lets the requests of incoming webhooks and the held deliveries of an exceeded month go on at once', async () => {
    const { db, api } = suite
    const { url, secret } = await incoming('Form')
    await app('POST', '/webhooks/outgoing', { name: 'T', url: 'https://example.com/', events: ['use.made'] })
    await use('incoming', 500)
    await use('outgoing', 999)
    const receive = () =>
      api.request('POST', new URL(url).pathname, {
        key: null,
        body: { email: 'ada@example.com' },
        headers: { 'X-Webhook-Secret': secret },
      })
    assert.deepEqual((await receive()).body.error, 'quota_exceeded')
    await db.tenant(api.organizationId, testActor, (tx) =>
      insertEvents(
        tx,
        [1, 2, 3].map(() => ({ name: 'use.made', data: {} })),
      ),
    )
    await matchEvents(db.system)
    const held = async () =>
      (await db.system('deliveries').where({ status: 'held', held_for: 'quota' })).length
    assert.equal(await held(), 2)

    await changed('professional')
    assert.equal((await receive()).status, 200)
    assert.equal(await held(), 0)
    const { body } = await app('GET', '/usage')
    assert.deepEqual(
      [body.plan, body.limits.outgoing_per_month, body.held_for_quota],
      ['professional', { used: 1_002, limit: 10_000 }, 0],
    )
  })

  it('refuses a plan that does not cover what exists, naming all of it, and changes nothing', async () => {
    await changed('professional')
    const names = ['Form', 'Shop', 'Chat', 'Calls']
    const made = []
    for (const [i, name] of names.entries()) made.push(await incoming(name, i < 2 ? 100 : 10))
    for (let i = 0; i < 6; i++)
      await app('POST', '/webhooks/outgoing', { name: `T${i}`, url: 'https://example.com/', events: ['*'] })
    await use('incoming', 4_000)
    const { status, body } = await change('free')
    assert.deepEqual(
      [status, body.error.type, body.error.param, body.error.message],
      [
        403,
        'plan_limit',
        'plan',
        'the plan free does not cover what the organization has: 4 incoming webhooks (at most 3); ' +
          '6 outgoing webhooks (at most 5); rate limit and burst of the incoming webhooks "Form", "Shop" ' +
          '(together at most 60 per minute)',
      ],
    )
    assert.equal((await app('GET', '/organization')).body.plan, 'professional')

    const { data } = (await app('GET', '/webhooks/outgoing')).body
    await app('DELETE', `/webhooks/outgoing/${data[0].id}`)
    await app('DELETE', `/webhooks/incoming/${made[0]!.id}`)
    await app('PATCH', `/webhooks/incoming/${made[1]!.id}`, { rate_limit: 30 })
    // The month's requests exceed the quota of the plan, which is no reason to refuse it.
    await changed('free')
    assert.deepEqual((await app('GET', '/usage')).body.limits.incoming_per_month, { used: 4_000, limit: 500 })
  })

  it('never leaves more webhooks than the plan has, whatever is created at the same time', async () => {
    for (let round = 0; round < 3; round++) {
      await suite.db.system('incoming_webhooks').delete()
      await changed('professional')
      await incoming('One')
      const creations = [2, 3, 4, 5].map((i) =>
        app('POST', '/webhooks/incoming', { name: `W${i}`, rate_limit: 10 }),
      )
      const answers = await Promise.all([change('free'), ...creations])
      assert.ok(answers.every(({ status }) => [200, 201, 403].includes(status)))
      const { body } = await app('GET', '/usage')
      const { used, limit } = body.limits.incoming_webhooks
      assert.ok(used <= limit, `${body.plan}: ${used} of ${limit}`)
    }
  })

  it('records who changed what, and nothing if the plan is the same; the limits of the operator stay', async () => {
    const { db, api } = suite
    await db
      .system('organizations')
      .where({ id: api.organizationId })
      .update({ limits: JSON.stringify({ requests_per_minute_per_key: 77 }) })
    await changed('free')
    await changed('enterprise')
    const { data } = (await app('GET', '/audit-log?action=organization.plan_changed')).body
    assert.deepEqual(
      data.map(({ actor, target, details }: (typeof data)[number]) => [actor.name, target.name, details]),
      [['owner', 'Test', { from: 'free', to: 'enterprise' }]],
    )
    const { headers } = await api.request('GET', '/v1/me')
    assert.equal(headers.get('x-ratelimit-limit'), '77')
  })

  it('takes an owner, a CSRF token and a plan that exists', async () => {
    const { db, api } = suite
    for (const role of ['admin', 'member'] as const) {
      const { status, body } = await (await signIn(db, api, role))('PUT', '/organization/plan', {
        plan: 'enterprise',
      })
      assert.deepEqual([status, body.error.message], [403, 'the operation requires the role owner'])
    }
    const { Cookie } = await sessionHeaders(db, api, 'owner')
    const path = '/app/organization/plan'
    const forged = await api.request('PUT', path, { key: null, headers: { Cookie }, body: { plan: 'free' } })
    assert.equal(forged.body.error.type, 'csrf_token_invalid')
    for (const plan of ['gold', 'Free', '', null, 1])
      assert.deepEqual((await change(plan)).body.detail[0].loc, ['body', 'plan'])
    assert.equal((await app('PUT', path.slice(4), {})).status, 422)
    assert.equal((await app('PUT', path.slice(4), { plan: 'free', limits: {} })).status, 422)
    assert.equal((await app('GET', '/organization')).body.plan, 'free')
  })

  it('is for organizations that the operator lets change their plan: by default its own', async () => {
    const { db } = suite
    const own = await createOrganization(db, { plan: 'enterprise', is_operators: true })
    const others = await createOrganization(db, { plan: 'free' })
    const statuses = async (rule?: PlanChangeRule) => {
      const api = await startApi(db, rule ? { PLAN_CHANGES: rule } : {})
      try {
        const found = []
        for (const organizationId of [own, others]) {
          const owner = await signIn(db, { ...api, organizationId })
          const { status, body } = await owner('PUT', '/organization/plan', { plan: 'professional' })
          if (status === 403) assert.match(body.error.hint, /PLAN_CHANGES/)
          found.push(status)
        }
        return found
      } finally {
        await api.close()
      }
    }
    assert.deepEqual(await statuses(), [200, 403])
    assert.deepEqual(await statuses('first'), [200, 403])
    assert.deepEqual(await statuses('closed'), [403, 403])
    assert.deepEqual(await statuses('open'), [200, 200])
  })
})
