import assert from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('limits of incoming webhooks', () => {
  let test: IncomingTest
  // X-Forwarded-For distinguishes the addresses.
  before(async () => {
    test = await startIncoming({ TRUSTED_PROXIES: '1' })
  })
  after(() => test?.close())
  beforeEach(nextMinute)

  const setPlan = (plan: string, limits: object = {}) =>
    test.db
      .system('organizations')
      .where({ id: test.api.organizationId })
      .update({ plan, limits: JSON.stringify(limits) })
  afterEach(() => setPlan('enterprise'))

  const payload = { email: 'limit@example.com' }
  const sendFrom = (webhook: TestWebhook, ip: string, secret = webhook.secret) =>
    test.send({ ...webhook, secret }, payload, { 'X-Forwarded-For': ip })
  const errorsOf = async (times: number, send: () => ReturnType<typeof sendFrom>) => {
    const errors: (string | undefined)[] = []
    for (let n = 0; n < times; n++) errors.push((await send()).body.error)
    return errors
  }
  /** Simulates the end of the minute by moving its counts to the previous one. */
  const minutePasses = (webhook: TestWebhook) =>
    test.db
      .system('limit_windows')
      .where({ subject: `incoming:${webhook.id}` })
      .update({ window_start: test.db.system.raw("window_start - interval '1 minute'") })

  it('a minute: 429 with Retry-After until its end, logged as Blocked', async () => {
    const webhook = await test.createWebhook({ rate_limit: 2 })
    assert.deepEqual(await errorsOf(2, () => test.send(webhook, payload)), [undefined, undefined])
    const { status, headers, body } = await test.send(webhook, payload)
    assert.deepEqual([status, body.success, body.error], [429, false, 'rate_limited'])
    assert.ok(body.retry_after >= 1 && body.retry_after <= 60)
    assert.equal(headers.get('retry-after'), String(body.retry_after))
    assert.deepEqual(
      ['limit', 'remaining'].map((name) => headers.get(`x-ratelimit-${name}`)),
      ['2', '0'],
    )
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.status, entry.error], ['Blocked', 'rate_limited'])
    await minutePasses(webhook)
    assert.equal((await test.send(webhook, payload)).status, 200)
  })

  it('a burst: more requests in a minute, as far as the previous minute did not use it', async () => {
    const webhook = await test.createWebhook({ rate_limit: 2, burst: 2 })
    const send = () => test.send(webhook, payload)
    assert.deepEqual(await errorsOf(5, send), [...Array(4).fill(undefined), 'rate_limited'])
    await minutePasses(webhook)
    assert.deepEqual(await errorsOf(3, send), [undefined, undefined, 'rate_limited'])
  })

  it('a temporary block of only the address that exceeds the limit repeatedly', async () => {
    const webhook = await test.createWebhook({ rate_limit: 1, block: { after: 2, minutes: 5 } })
    const send = () => sendFrom(webhook, '192.0.2.1')
    assert.deepEqual(await errorsOf(3, send), [undefined, 'rate_limited', 'rate_limited'])
    await minutePasses(webhook)
    const blocked = await send()
    assert.deepEqual([blocked.status, blocked.body.error], [429, 'blocked'])
    assert.ok(blocked.body.retry_after > 240 && blocked.body.retry_after <= 300)
    assert.equal(blocked.headers.get('retry-after'), String(blocked.body.retry_after))
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.status, entry.source_ip], ['Blocked', '192.0.2.1'])
    assert.equal((await sendFrom(webhook, '192.0.2.2')).status, 200)
    await test.db
      .system('incoming_sources')
      .where({ webhook_id: webhook.id })
      .update({ blocked_until: new Date() })
    await minutePasses(webhook)
    assert.equal((await send()).status, 200)
  })

  it('twenty wrong secrets block the address, also with the right secret afterwards', async () => {
    const webhook = await test.createWebhook()
    const wrong = () => sendFrom(webhook, '192.0.2.9', 'guess')
    assert.deepEqual(new Set(await errorsOf(20, wrong)), new Set(['invalid_secret']))
    assert.equal((await sendFrom(webhook, '192.0.2.9')).body.error, 'blocked')
    assert.equal((await sendFrom(webhook, '192.0.2.10')).status, 200)
  })

  it('the requests of a blocked address are one log row with their count, without long headers', async () => {
    const webhook = await test.createWebhook()
    const flood = () =>
      test.send({ ...webhook, secret: 'guess' }, payload, {
        'X-Forwarded-For': '192.0.2.11',
        'X-Long': 'x'.repeat(5_000),
      })
    await errorsOf(20, flood)
    assert.deepEqual(new Set(await errorsOf(12, flood)), new Set(['blocked']))
    const list = (await test.app('GET', `/webhooks/incoming/${webhook.id}/logs?limit=100`)).body
    assert.equal(list.total, 21)
    const entryOf = (data: { error: string }[], error: string) =>
      data.find((entry) => entry.error === error) as { id: string; error: string; requests: number }
    const [blocked, wrong] = [entryOf(list.data, 'blocked'), entryOf(list.data, 'invalid_secret')]
    assert.deepEqual([blocked.error, blocked.requests, wrong.requests], ['blocked', 12, 1])
    const { body } = await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${wrong.id}`)
    assert.equal(body.headers['x-long'].length, 500)
    // A later block has a row of its own.
    await test.db
      .system('incoming_sources')
      .where({ webhook_id: webhook.id })
      .update({ blocked_until: new Date() })
    await errorsOf(22, flood)
    const again = entryOf(await test.logs(webhook), 'blocked')
    assert.deepEqual([again.error, again.requests], ['blocked', 2])
    assert.notEqual(again.id, blocked.id)
  })

  it('wrong secrets from one IPv6 /64 block all of it', async () => {
    const webhook = await test.createWebhook()
    for (let n = 0; n < 20; n++) await sendFrom(webhook, `2001:db8:1:2::${n}`, 'guess')
    assert.equal((await sendFrom(webhook, '2001:db8:1:2:a:b:c:d')).body.error, 'blocked')
    assert.equal((await sendFrom(webhook, '2001:db8:1:3::1')).status, 200)
    const entry = (await test.logs(webhook)).find(({ error }) => error === 'blocked')
    assert.equal(entry.source_ip, '2001:db8:1:2:a:b:c:d')
  })

  it('a forged X-Forwarded-For does not change the address', async () => {
    const webhook = await test.createWebhook({ ip_whitelist: ['198.51.100.0/24'] })
    const from = (header: string) => sendFrom(webhook, header)
    assert.equal((await from('198.51.100.7, 203.0.113.5')).body.error, 'ip_not_allowed')
    assert.equal((await from('203.0.113.5, 198.51.100.7')).status, 200)
  })

  it('a month: counts verified requests only, 429 quota_exceeded until its end', async () => {
    const webhook = await test.createWebhook()
    const { used } = (await test.app('GET', '/usage')).body.limits.incoming_per_month
    await setPlan('enterprise', { incoming_per_month: used + 2 })
    await test.send({ ...webhook, secret: 'wrong' }, payload)
    assert.deepEqual(await errorsOf(2, () => test.send(webhook, payload)), [undefined, undefined])
    const { status, headers, body } = await test.send(webhook, payload)
    assert.deepEqual([status, body.success, body.error], [429, false, 'quota_exceeded'])
    const now = new Date()
    const left = (Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1) - now.getTime()) / 1000
    assert.ok(Math.abs(body.retry_after - left) < 5)
    assert.equal(headers.get('retry-after'), String(body.retry_after))
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.status, entry.error], ['Blocked', 'quota_exceeded'])
  })

  it('a month: the replay of a refused request and its repetition by the sender are one, both ways', async () => {
    const form = (boundary: string): [string, Record<string, string>] => [
      `--${boundary}\r\nContent-Disposition: form-data; name="email"\r\n\r\nform@example.com\r\n--${boundary}--\r\n`,
      { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
    ]
    const known = (attempt: string): [string, Record<string, string>] => [
      'formID=1&submissionID=2&rawRequest=%7B%22email%22%3A%22jot%40example.com%22%7D',
      { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Attempt': attempt },
    ]
    const cases: [typeof form, object][] = [
      [form, { dedupe_window: 3_600 }],
      [known, {}],
    ]
    for (const [request, settings] of cases)
      for (const first of ['replay', 'retry']) {
        const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway' }, ...settings })
        const { used } = (await test.app('GET', '/usage')).body.limits.incoming_per_month
        await setPlan('enterprise', { incoming_per_month: used })
        assert.equal((await test.send(webhook, ...request('one'))).body.error, 'quota_exceeded')
        await setPlan('enterprise')
        const [entry] = await test.logs(webhook)
        const replay = async () =>
          (await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, { log_id: entry.id })).body
            .result
        const retry = async () => (await test.send(webhook, ...request('two'))).body
        if (first === 'replay') {
          const done = await replay()
          const again = await retry()
          assert.deepEqual(
            [again.message, again.record_id],
            ['already received', done.record_id],
            request.name,
          )
        } else {
          const { record_id } = await retry()
          const done = await replay()
          assert.deepEqual([done.outcome, done.record_id], ['skipped', record_id], request.name)
        }
      }
  })

  it('a month is exact under concurrency, and shown as usage; refused requests are not in it', async () => {
    const other = await startIncoming()
    const webhook = await other.createWebhook({ rate_limit: 1_000 })
    await other.db.system('organizations').update({ limits: JSON.stringify({ incoming_per_month: 20 }) })
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => other.send(webhook, { email: `q${n}@x.test` })),
    )
    const statuses = answers.map(({ status }) => status)
    assert.deepEqual(
      [200, 429].map((one) => statuses.filter((status) => status === one).length),
      [20, 30],
    )
    const usage = async () => (await other.app('GET', '/usage')).body
    assert.deepEqual((await usage()).limits.incoming_per_month, { used: 20, limit: 20 })
    // After an upgrade only accepted requests count.
    await other.db.system('organizations').update({ limits: JSON.stringify({ incoming_per_month: 21 }) })
    assert.equal((await other.send(webhook, { email: 'more@x.test' })).status, 200)
    await other.db.system('organizations').update({ plan: 'free', limits: '{}' })
    const { plan, limits } = await usage()
    assert.deepEqual(
      [plan, limits.incoming_webhooks, limits.incoming_per_month, limits.incoming_per_minute.limit],
      ['free', { used: 1, limit: 3 }, { used: 21, limit: 500 }, 60],
    )
    await other.close()
  })

  it('a plan: the number of webhooks and of requests per minute', async () => {
    const other = await startIncoming()
    await other.db.system('organizations').update({ plan: 'free' })
    const create = (values: object, status: number) =>
      other.app('POST', '/webhooks/incoming', { name: 'x', ...values }, status)
    const tooFast = await create({ rate_limit: 61 }, 403)
    assert.deepEqual([tooFast.body.error.type, tooFast.body.error.param], ['plan_limit', 'rate_limit'])
    assert.equal((await create({ rate_limit: 60, burst: 1 }, 403)).body.error.param, 'burst')
    // Concurrent, because only one may become the third.
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        other.app('POST', '/webhooks/incoming', { name: 'x' }).catch(() => null),
      ),
    )
    const made = answers.filter((answer) => answer !== null)
    assert.equal(made.length, 3)
    const path = `/webhooks/incoming/${made[0]!.body.id}`
    assert.equal((await other.app('PATCH', path, { rate_limit: 61 }, 403)).body.error.type, 'plan_limit')
    assert.equal((await create({}, 403)).body.error.type, 'plan_limit')
    await other.app('DELETE', path)
    await create({}, 201)
    await other.close()
  })
})

/** Waits if the current minute, the window of the limit, ends soon. */
async function nextMinute(): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000)
  if (left < 10_000) await new Promise((resolve) => setTimeout(resolve, left))
}
