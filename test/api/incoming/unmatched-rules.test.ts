import assert from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('a mapping rule that never wrote anything', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const rules = [
    { from: 'email', to: 'email' },
    { from: '["1.3"]', to: 'phone' },
    { from: 'nick', to: 'first_name', when: { path: 'kind', is: 'equal', to: 'friend' } },
    { from: 'town', to: 'address.city', default: 'Zurich' },
  ]
  const webhookOf = (mapping: object = { mode: 'manual', rules }) =>
    test.createWebhook({ field_mapping: mapping, rate_limit: 1_000 })
  const problem = async ({ id }: TestWebhook): Promise<string | null> =>
    (await test.app('GET', `/webhooks/incoming/${id}`)).body.problem
  const send = (webhook: TestWebhook, count: number, more: object = {}) =>
    Promise.all(
      Array.from({ length: count }, (_, n) =>
        test.send(webhook, { email: `a${n}@example.com`, nick: 'Ada', ...more }),
      ),
    )

  it('is a problem of the webhook once ten requests have come, until it is changed', async () => {
    const webhook = await webhookOf()
    assert.equal(await problem(webhook), null)
    await send(webhook, 9)
    assert.equal(await problem(webhook), null)
    await send(webhook, 1)
    assert.match(
      (await problem(webhook))!,
      /^the last 10 requests had no value for \["1\.3"\] → phone, nick → first_name: /,
    )
    await test.app('PATCH', `/webhooks/incoming/${webhook.id}`, {
      field_mapping: { mode: 'manual', rules: rules.slice(0, 1) },
    })
    assert.equal(await problem(webhook), null)
    await send(webhook, 10)
    assert.equal(await problem(webhook), null)
  })

  it('is none after one request in which it wrote something, and counts neither refused requests nor replays', async () => {
    const webhook = await webhookOf()
    await send(webhook, 9)
    await Promise.all(
      [1, 2, 3].map(() => test.send(webhook, { email: 'x@example.com' }, { 'X-Webhook-Secret': 'wrong' })),
    )
    const entry = (await test.logs(webhook)).find(({ status }) => status === 'Success')
    await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, { log_id: entry.id })
    assert.equal(await problem(webhook), null)
    await send(webhook, 1, { '1.3': '+41 44 668 18 00', kind: 'friend' })
    assert.equal(await problem(webhook), null)
  })

  it('is none where a later rule for the same field wrote, and may have replaced what it wrote', async () => {
    const webhook = await webhookOf({
      mode: 'manual',
      rules: [
        { from: 'email', to: 'email' },
        { from: 'labels', to: 'tags' },
        { from: 'nick', to: 'tags' },
        { from: 'town', to: 'tags' },
      ],
    })
    await send(webhook, 10, { labels: 'vip' })
    assert.match((await problem(webhook))!, /^the last 10 requests had no value for town → tags: /)
  })

  it('is looked for in the last 100 requests only, and not in automatic mapping', async () => {
    const webhook = await webhookOf()
    await send(webhook, 1, { '1.3': '+41 44 668 18 00', kind: 'friend' })
    await send(webhook, 99)
    assert.equal(await problem(webhook), null)
    await send(webhook, 1)
    assert.match((await problem(webhook))!, /^the last 100 requests had no value for \["1\.3"\] → phone/)
    const automatic = await webhookOf({ mode: 'automatic' })
    await send(automatic, 10)
    assert.equal(await problem(automatic), null)
  })
})
