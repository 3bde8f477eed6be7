import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { SENDERS } from '../../../db/model/incoming/mapping/senders/index.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const secret = 'a secret of the sender'
const mac = (text: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', secret).update(text).digest(encoding)

describe('requests that a sender repeats', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const deduplication = { action: 'Create Anyway' }
  const noteCount = async () => (await test.db.system('notes').count())[0]!.count
  /** Whether the second request is answered as the first. */
  async function isRepeated(webhook: TestWebhook, ...requests: [unknown, Record<string, string>][]) {
    const answers = []
    for (const [body, headers] of requests) answers.push(await test.send(webhook, body, headers))
    assert.deepEqual(
      answers.map(({ status }) => status),
      answers.map(() => 200),
      JSON.stringify(answers.map(({ body }) => body)),
    )
    return answers.at(-1)!.body.message === 'already received'
  }

  it('without an id are found by their body within the window of the webhook, notes included', async () => {
    const lead = { email: 'ada@example.com', message: 'Please call me' }
    const always = await test.createWebhook({ deduplication })
    assert.equal(await isRepeated(always, [lead, {}], [lead, {}]), false)
    const webhook = await test.createWebhook({ deduplication, dedupe_window: 60 })
    const before = Number(await noteCount())
    const answers = await Promise.all([1, 2, 3].map(() => test.send(webhook, lead)))
    assert.equal(new Set(answers.map(({ body }) => body.record_id)).size, 1)
    assert.equal(Number(await noteCount()), before + 1)
    assert.equal(await isRepeated(webhook, [{ ...lead, message: 'And again' }, {}]), false)
    // The window is over: the same body is a new request.
    await test.db.system('incoming_deliveries').update({
      created_at: test.db.system.raw("now() - interval '61 seconds'"),
    })
    assert.equal(await isRepeated(webhook, [lead, {}]), false)
    assert.equal(await isRepeated(webhook, [lead, {}]), true)
  })

  it('add no second note without an id and a window, unless another came between', async () => {
    const webhook = await test.createWebhook()
    const send = async (message: string, headers = {}) =>
      (await test.send(webhook, { email: 'noted@example.com', message }, headers)).body
    const before = Number(await noteCount())
    const { record_id } = await send('Please call me')
    const again = await send('Please call me')
    assert.deepEqual([again.action, again.record_id], ['updated', record_id])
    assert.match(again.warnings[0], /the note was not added/)
    await Promise.all([1, 2, 3].map(() => send('Please call me')))
    assert.equal(Number(await noteCount()), before + 1)
    await send('And again')
    await send('Please call me')
    assert.equal(Number(await noteCount()), before + 3)
    // Another delivery id is another message.
    await send('Please call me', { 'Webhook-Id': 'm-1' })
    assert.equal(Number(await noteCount()), before + 4)
  })

  it('are found by their form, whatever its boundary is', async () => {
    const webhook = await test.createWebhook({ deduplication, dedupe_window: 60 })
    const form = (boundary: string): [string, Record<string, string>] => [
      `--${boundary}\r\nContent-Disposition: form-data; name="email"\r\n\r\nform@example.com\r\n--${boundary}--\r\n`,
      { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
    ]
    assert.equal(await isRepeated(webhook, form('one'), form('two')), true)
  })

  it('have the window of their known sender unless another is chosen', async () => {
    const window = async (values: object) =>
      ((await test.createWebhook({ sender: 'webflow', ...values })) as object as { dedupe_window: number })
        .dedupe_window
    assert.deepEqual([await window({}), await window({ dedupe_window: 0 })], [3_600, 0])
    await test.app('POST', '/webhooks/incoming', { name: 'x', dedupe_window: 86_401 }, 422)
  })

  it('of Cal.com, Calendly and Mailchimp, which send no id, are found by their body for a day', async () => {
    const at = '2026-03-02T09:14:07.120Z'
    const signed = (body: string): [string, Record<string, string>] => [
      body,
      { 'X-Cal-Signature-256': mac(body) },
    ]
    const body = JSON.stringify({ triggerEvent: 'BOOKING_CREATED', createdAt: at, payload: { uid: 'a' } })
    const calcom = await test.createWebhook({ target_entity: 'none', sender: 'cal.com', secret })
    assert.equal((await test.send(calcom, body, { 'X-Cal-Signature-256': 'forged' })).status, 401)
    assert.equal(await isRepeated(calcom, signed(body)), false)
    assert.equal(await isRepeated(calcom, signed(body)), true)
    assert.equal(await isRepeated(calcom, signed(body.replace('"a"', '"b"'))), false)
    for (const sender of ['calendly', 'mailchimp']) {
      const made = (await test.createWebhook({ sender })) as object as { dedupe_window: number }
      assert.equal(made.dedupe_window, 86_400, sender)
    }
  })

  it('are known for as long as their sender repeats them: Webflow, Freshdesk, Chargebee', async () => {
    const ada = { email: 'ada@example.com' }
    const webflow = { triggerType: 'form_submission', payload: { data: ada } }
    const freshdesk = { freshdesk_webhook: { ticket_id: 7, ticket_requester_email: 'ada@example.com' } }
    const chargebee = {
      id: 'ev_1',
      object: 'event',
      event_type: 'customer_created',
      content: { customer: ada },
    }
    const hour = 3_600
    for (const [sender, payload, seconds] of [
      // 3 repetitions, each after 10 minutes.
      ['webflow', webflow, 30 * 60],
      // After 5, 30 and 60 minutes.
      ['freshdesk', freshdesk, 95 * 60],
      // After 2, 6 and 30 minutes, 1, 5, 24 and 48 hours.
      ['chargebee', chargebee, 78 * hour + 38 * 60],
    ] as const) {
      const { verification: own, ...rest } = SENDERS.get(sender)!
      const verification = own.type === 'webflow' ? { type: 'secret' } : undefined
      const webhook = await test.createWebhook({ sender, secret, deduplication, verification })
      const headers: Record<string, string> =
        own.type === 'basic'
          ? { Authorization: `Basic ${Buffer.from(`${own.username}:${secret}`).toString('base64')}` }
          : {}
      const sent: [object, Record<string, string>] = [payload, headers]
      assert.equal(await isRepeated(webhook, sent), false, rest.name)
      await test.db
        .system('incoming_deliveries')
        .where({ webhook_id: webhook.id })
        .update({ created_at: new Date(Date.now() - seconds * 1_000) })
      assert.equal(await isRepeated(webhook, sent), true, rest.name)
    }
  })

  it('of Paddle have the id of the event, whatever their time is', async () => {
    const webhook = await test.createWebhook({ target_entity: 'none', sender: 'paddle', secret })
    const event = (notification_id: string) =>
      JSON.stringify({
        event_id: 'evt_1',
        event_type: 'customer.created',
        notification_id,
        data: { id: 'ctm_1' },
      })
    const sent = (body: string, secondsAgo: number): [string, Record<string, string>] => {
      const t = Math.floor(Date.now() / 1000) - secondsAgo
      return [body, { 'Paddle-Signature': `ts=${t};h1=${mac(`${t}:${body}`)}` }]
    }
    assert.equal(await isRepeated(webhook, sent(event('ntf_1'), 60)), false)
    assert.equal(await isRepeated(webhook, sent(event('ntf_1'), 0)), true)
  })

  it('of Slack have the id of the event or command', async () => {
    const webhook = await test.createWebhook({ target_entity: 'none', sender: 'slack', secret })
    const signed = (body: string, type: string): [string, Record<string, string>] => {
      const t = String(Math.floor(Date.now() / 1000))
      return [
        body,
        {
          'Content-Type': type,
          'X-Slack-Request-Timestamp': t,
          'X-Slack-Signature': `v0=${mac(`v0:${t}:${body}`)}`,
        },
      ]
    }
    const event = signed(
      JSON.stringify({ type: 'event_callback', event_id: 'Ev1', event: {} }),
      'application/json',
    )
    assert.equal(await isRepeated(webhook, event, event), true)
    const command = (trigger: string) =>
      signed(`command=%2Fweather&text=94070&trigger_id=${trigger}`, 'application/x-www-form-urlencoded')
    assert.equal(await isRepeated(webhook, command('1.1'), command('1.1')), true)
    assert.equal(await isRepeated(webhook, command('1.2')), false)
  })

  it('are found although Linear and Intercom change their times and attempts', async () => {
    const linear = await test.createWebhook({ target_entity: 'none', sender: 'linear', secret })
    const at = (webhookTimestamp: number, id = '1'): [string, Record<string, string>] => {
      const body = JSON.stringify({
        action: 'create',
        type: 'Issue',
        webhookId: 'w',
        data: { id },
        webhookTimestamp,
      })
      return [body, { 'Linear-Signature': mac(body), 'Content-Type': 'application/json' }]
    }
    const now = Date.now()
    assert.equal(await isRepeated(linear, at(now), at(now + 5_000)), true)
    assert.equal(await isRepeated(linear, at(now, '2')), false)
    const intercom = await test.createWebhook({ target_entity: 'none', sender: 'intercom', secret })
    const attempt = (delivery_attempts: number): [string, Record<string, string>] => {
      const body = JSON.stringify({
        type: 'notification_event',
        id: 'notif_1',
        topic: 'contact.created',
        delivery_attempts,
        data: { item: {} },
      })
      const signature = createHmac('sha1', secret).update(body).digest('hex')
      return [body, { 'X-Hub-Signature': `sha1=${signature}`, 'Content-Type': 'application/json' }]
    }
    assert.equal(await isRepeated(intercom, attempt(1), attempt(2)), true)
  })

  it('with another method are refused with the rate limit, and share a log entry in a minute', async () => {
    const webhook = await test.createWebhook()
    for (let n = 0; n < 3; n++) {
      const { status, headers } = await test.api.request('GET', `/webhooks/incoming/${webhook.id}`, {
        key: null,
      })
      assert.deepEqual([status, headers.get('x-ratelimit-limit')], [405, '60'])
    }
    const entries = await test.logs(webhook)
    assert.ok(entries.length <= 2, 'those of a minute share an entry')
    assert.deepEqual([entries[0].error, entries[0].http_status], ['method_not_allowed', 405])
    assert.equal(
      entries.reduce((sum, { requests }) => sum + requests, 0),
      3,
    )
  })
})
