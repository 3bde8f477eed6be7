import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'

describe('payloads of incoming webhooks, and their log', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const ada = { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }
  const BODIES: [string, string, string][] = [
    [
      'JSON',
      'application/json',
      JSON.stringify({ first_name: 'Ada', surname: 'Lovelace', email: ada.email }),
    ],
    ['JSON with a +json type', 'application/vnd.api+json', `{"data":${JSON.stringify(ada)}}`],
    ['a form', 'application/x-www-form-urlencoded', 'name=Ada+Lovelace&email=ada%40example.com'],
    [
      'a nested form',
      'application/x-www-form-urlencoded',
      'lead[name]=Ada+Lovelace&lead[email]=ada%40example.com',
    ],
    ['XML', 'application/xml', '<lead><name>Ada Lovelace</name><email>ada@example.com</email></lead>'],
    [
      'text/xml with a namespace',
      'text/xml; charset=utf-8',
      '<c:lead xmlns:c="urn:x" email="ada@example.com"><c:name>Ada Lovelace</c:name></c:lead>',
    ],
    [
      'XML with attributes',
      'application/xml',
      '<lead><name lang="en">Ada Lovelace</name><email type="work">ada@example.com</email></lead>',
    ],
  ]
  for (const [name, type, body] of BODIES)
    it(`${name} becomes a contact`, async () => {
      const webhook = await test.createWebhook({ deduplication: { action: 'Create Anyway' } })
      const answer = await test.send(webhook, body, { 'Content-Type': type })
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      const contact = await test.contact(answer.body.record_id)
      assert.deepEqual(
        { first_name: contact.first_name, last_name: contact.last_name, email: contact.email },
        ada,
      )
      assert.deepEqual(contact.created_by, { type: 'webhook', id: webhook.id })
    })

  it('a gzip body becomes a contact, its signature is over the compressed bytes, and the log has its text', async () => {
    const secret = 'a secret of sixteen'
    const webhook = await test.createWebhook({
      secret,
      verification: { type: 'hmac', header: 'X-Sign' },
    })
    const zipped = gzipSync('<lead><name>Ada L</name><email>zip@example.com</email></lead>')
    const headers = {
      'Content-Type': 'application/xml',
      'Content-Encoding': 'gzip',
      'X-Sign': createHmac('sha256', secret).update(zipped).digest('hex'),
    }
    const { status, body } = await test.send(webhook, zipped, headers)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal((await test.contact(body.record_id)).email, 'zip@example.com')
    const [{ id, payload_size }] = await test.logs(webhook)
    const entry = await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${id}`)
    assert.match(entry.body.payload, /^<lead><name>Ada L</)
    assert.equal(payload_size, zipped.length)
  })

  it('repeated XML with attributes updates its contact', async () => {
    const webhook = await test.createWebhook()
    const xml = '<lead><name>Ada L</name><email type="work">again@example.com</email></lead>'
    const send = async () => (await test.send(webhook, xml, { 'Content-Type': 'text/xml' })).body
    const [first, second] = [await send(), await send()]
    assert.deepEqual([first.action, second.action], ['created', 'updated'])
    assert.equal(second.record_id, first.record_id)
    const [{ id }] = await test.logs(webhook)
    const { body } = await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${id}`)
    assert.deepEqual([body.payload, body.mapped_data.sources.email], [xml, 'email'])
  })

  it('a list of one record is that record', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, [{ email: 'one@example.com' }])
    assert.deepEqual([body.action, body.results], ['created', undefined])
    const again = await test.send(webhook, { email: 'one@example.com' })
    assert.deepEqual([again.body.action, again.body.record_id], ['updated', body.record_id])
  })

  it('a repeated GitHub delivery has no effect, whatever id it has, which is not signed', async () => {
    const webhook = await test.createWebhook({
      verification: { type: 'github' },
      deduplication: { action: 'Create Anyway' },
    })
    const body = JSON.stringify(ada)
    const signature = `sha256=${createHmac('sha256', webhook.secret).update(body).digest('hex')}`
    const deliver = (id?: string, text = body) =>
      test.send({ ...webhook, secret: '' }, text, {
        ...(id && { 'X-GitHub-Delivery': id }),
        'X-Hub-Signature-256': signature,
      })
    const first = await deliver('d1')
    assert.deepEqual([first.status, first.body.action], [200, 'created'])
    const again = await deliver('d1')
    assert.deepEqual([again.body.record_id, again.body.action], [first.body.record_id, 'created'])
    for (const id of ['d2', undefined])
      assert.equal((await deliver(id)).body.record_id, first.body.record_id, `${id}`)
    await test.db.system('incoming_deliveries').update({ created_at: new Date(Date.now() - 97 * 3_600_000) })
    assert.notEqual((await deliver('d2')).body.record_id, first.body.record_id, 'after four days')
    assert.equal((await deliver('d3', `${body} `)).body.error, 'invalid_secret')
    const entries = await test.logs(webhook)
    assert.deepEqual(
      entries.map((entry) => entry.action),
      [null, 'Created', 'Skipped', 'Skipped', 'Skipped', 'Created'],
    )
  })

  it('a repeated request of Twilio has no effect, whatever its token and the order of its form, which are not signed', async () => {
    const webhook = await test.createWebhook({
      verification: { type: 'twilio' },
      field_mapping: { mode: 'manual', rules: [{ from: 'email', to: 'email' }] },
      deduplication: { action: 'Create Anyway' },
    })
    const url = `${test.api.url}/webhooks/incoming/${webhook.id}`
    const members = ['email=ada%40example.com', 'first_name=Ada']
    const signature = createHmac('sha1', webhook.secret)
      .update(`${url}emailada@example.comfirst_nameAda`)
      .digest('base64')
    const deliver = async (token: string, body: string) => {
      const headers = {
        'Content-Type': 'application/x-www-form-urlencoded',
        'X-Twilio-Signature': signature,
        'I-Twilio-Idempotency-Token': token,
      }
      const answer = await fetch(url, { method: 'POST', body, headers })
      return (await answer.json()) as { record_id: string; success: boolean; message: string }
    }
    const first = await deliver('t1', members.join('&'))
    assert.ok(first.record_id, JSON.stringify(first))
    for (const [token, body] of [
      ['t1', members.join('&')],
      ['t2', members.join('&')],
      ['t3', members.toReversed().join('&')],
    ] as const)
      assert.equal((await deliver(token, body)).record_id, first.record_id, token)
  })

  it('a failed delivery does not count as received', async () => {
    const webhook = await test.createWebhook()
    const deliver = (payload: object) => test.send(webhook, payload, { 'Idempotency-Key': 'k1' })
    assert.equal((await deliver({ email: 'wrong' })).status, 400)
    assert.equal((await deliver({ email: 'right@example.com' })).body.action, 'created')
  })

  it('the log has the whole request, with every secret masked', async () => {
    const webhook = await test.createWebhook({
      verification: { type: 'hmac', header: 'X-Proof', encoding: 'base64' },
    })
    const body = JSON.stringify(ada)
    const proof = createHmac('sha256', webhook.secret).update(body).digest('base64')
    const secrets = { 'X-Proof': proof, Authorization: 'Bearer abc', Cookie: 'sid=1', 'X-Api-Key': 'k' }
    const { body: answer } = await test.send(webhook, body, { ...secrets, 'User-Agent': 'Form/1.0' })
    const [entry] = await test.logs(webhook)
    const { body: detail } = await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${entry.id}`)
    assert.equal(detail.headers['user-agent'], 'Form/1.0')
    for (const name of ['x-proof', 'authorization', 'cookie', 'x-api-key', 'x-webhook-secret'])
      assert.equal(detail.headers[name], '[masked]', name)
    assert.deepEqual([detail.payload, detail.payload_size], [body, body.length])
    assert.deepEqual(
      [detail.mapped_data.fields.email, detail.mapped_data.sources.email],
      [ada.email, 'email'],
    )
    assert.deepEqual([detail.record_id, detail.http_status, detail.error], [answer.record_id, 200, null])
    assert.ok(detail.response_time_ms > 0)
  })

  it('the log truncates the payload of an unverified sender', async () => {
    const webhook = await test.createWebhook()
    const long = { email: 'ada@example.com', text: '\u{1f600}'.repeat(100_000) }
    const detailAfter = async (secret: string) => {
      await test.send({ ...webhook, secret }, long)
      const [entry] = await test.logs(webhook)
      return (await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${entry.id}`)).body
    }
    const unproven = await detailAfter('wrong')
    assert.deepEqual([[...unproven.payload].length, unproven.payload_truncated], [2_048, true])
    const proven = await detailAfter(webhook.secret)
    assert.deepEqual([[...proven.payload].length, proven.payload_truncated], [65_536, true])
    assert.equal(proven.payload_size, Buffer.byteLength(JSON.stringify(long)))
  })
})
