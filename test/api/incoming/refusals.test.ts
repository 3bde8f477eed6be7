import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectSocket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { untilBlocked } from '../../support/blocked.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'
import { until } from '../../support/until.ts'

describe('bad requests to incoming webhooks', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  /** After every refusal the service must accept the next request. */
  afterEach(async () => {
    const { status } = await test.send(await test.createWebhook(), { email: 'alive@example.com' })
    assert.equal(status, 200)
  })

  const xml = { 'Content-Type': 'application/xml' }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const MiB = 1024 * 1024
  const CASES: [string, unknown, Record<string, string>, number, string][] = [
    ['an XML entity bomb', bomb(), xml, 400, 'invalid_payload'],
    ['XML with an external entity', external(), xml, 400, 'invalid_payload'],
    ['truncated XML', '<lead><email>x@example.com</lead>', xml, 400, 'invalid_payload'],
    ['XML nested 5,000 deep', '<a>'.repeat(5_000) + '</a>'.repeat(5_000), xml, 400, 'invalid_payload'],
    ['truncated JSON', '{"email":', {}, 400, 'invalid_payload'],
    ['JSON nested 100,000 deep', '['.repeat(100_000) + ']'.repeat(100_000), {}, 400, 'invalid_payload'],
    ['JSON of 400,000 values', `[${'1,'.repeat(400_000)}1]`, {}, 400, 'invalid_payload'],
    ['JSON with a __proto__ key', '{"__proto__":{"admin":true}}', {}, 400, 'invalid_payload'],
    ['a form nested 1,000 deep', `a${'[b]'.repeat(1_000)}=1`, form, 400, 'invalid_payload'],
    ['no body', '', {}, 400, 'invalid_payload'],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 400, 'invalid_payload'],
    ['a body of more than 1 MiB', `"${'x'.repeat(MiB)}"`, {}, 413, 'payload_too_large'],
    ['a text', 'hello', { 'Content-Type': 'text/plain' }, 415, 'unsupported_media_type'],
    [
      'a multipart form that is cut off',
      '--b\r\nContent-Disposition: form-data; name="email"\r\n\r\nx@',
      { 'Content-Type': 'multipart/form-data; boundary=b' },
      400,
      'invalid_payload',
    ],
    [
      'an unknown charset',
      '{}',
      { 'Content-Type': 'application/json; charset=utf-99' },
      415,
      'unsupported_media_type',
    ],
    [
      'a body in a charset that it does not have',
      Buffer.from('{"email": "\xff"}', 'latin1'),
      { 'Content-Type': 'application/json; charset=utf-8' },
      400,
      'invalid_payload',
    ],
    ['a truncated gzip body', Buffer.from([31, 139]), { 'Content-Encoding': 'gzip' }, 400, 'invalid_payload'],
    [
      'a gzip bomb',
      gzipSync(Buffer.alloc(50 * 1024 * 1024, ' ')),
      { 'Content-Encoding': 'gzip' },
      413,
      'payload_too_large',
    ],
    ['another compression', Buffer.from([1]), { 'Content-Encoding': 'br' }, 415, 'unsupported_media_type'],
    ['a payload without contact fields', { colour: 'blue' }, {}, 400, 'validation_failed'],
    ['an invalid email', { email: 'nobody' }, {}, 400, 'validation_failed'],
  ]

  for (const [name, body, headers, status, error] of CASES)
    it(`${name}: ${status} ${error}, with a log row`, async () => {
      const webhook = await test.createWebhook()
      const answer = await test.send(webhook, body, headers)
      assert.deepEqual([answer.status, answer.body.error], [status, error], JSON.stringify(answer.body))
      const { message, details, ...rest } = answer.body
      assert.deepEqual(rest, { success: false, error })
      assert.equal(typeof message, 'string')
      assert.equal(typeof details, error === 'validation_failed' ? 'object' : 'undefined')
      assert.ok(answer.headers.get('x-ratelimit-limit'))
      assert.ok(answer.headers.get('x-request-id'))
      const [entry] = await test.logs(webhook)
      assert.deepEqual([entry.status, entry.http_status, entry.error], ['Failed', status, error])
    })

  it('an invalid field is named in details', async () => {
    const { body } = await test.send(await test.createWebhook(), { email: 'nobody', website: 'not a url' })
    assert.deepEqual(Object.keys(body.details).sort(), ['email', 'website'])
  })

  it('another method: 405, with Allow', async () => {
    const webhook = await test.createWebhook()
    const { status, headers, body } = await test.api.request('GET', `/webhooks/incoming/${webhook.id}`)
    assert.deepEqual([status, headers.get('allow'), body.error], [405, 'POST', 'method_not_allowed'])
  })

  it('an unknown webhook or an invalid id: 404', async () => {
    for (const id of [crypto.randomUUID(), 'x', '..%2f', "' or 1=1"]) {
      const { status, body } = await test.send({ id, secret: 'x', url: '' }, { email: 'x@example.com' })
      assert.deepEqual([status, body.success, body.error], [404, false, 'not_found'], id)
    }
  })

  it('no secret, a wrong one, one of another webhook: 401 before the body is parsed', async () => {
    const [webhook, other] = [await test.createWebhook(), await test.createWebhook()]
    for (const secret of ['', 'wrong', `${webhook.secret}x`, other.secret]) {
      const { status, body, headers } = await test.send({ ...webhook, secret }, '{"a":')
      const error = secret === '' ? 'missing_secret' : 'invalid_secret'
      assert.deepEqual([status, body.success, body.error], [401, false, error])
      assert.equal(headers.get('x-ratelimit-remaining'), '60')
    }
  })

  /** The status line and the body of an answer to raw HTTP. */
  async function rawAnswer(request: string): Promise<string> {
    const { hostname, port } = new URL(test.api.url)
    const socket = connectSocket(Number(port), hostname)
    socket.write(request)
    let answer = ''
    for await (const chunk of socket) {
      answer += chunk
      if (answer.includes('}')) break
    }
    return answer
  }

  it('a Content-Length of 4 GiB: 413, with a log row', async () => {
    const webhook = await test.createWebhook()
    const answer = await rawAnswer(
      `POST /webhooks/incoming/${webhook.id} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        `X-Webhook-Secret: ${webhook.secret}\r\nContent-Length: 4294967296\r\n\r\n{`,
    )
    assert.match(answer, /^HTTP\/1.1 413 /)
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.error, entry.payload_size], ['payload_too_large', 4_294_967_296])
  })

  it('no Host: 400 with a reason', async () => {
    const answer = await rawAnswer(`POST /webhooks/incoming/1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n`)
    assert.match(answer, /^HTTP\/1.1 400 .*the request has no Host header/s)
  })

  it('a sender that disconnects within the body: no record, and a log row', async () => {
    const webhook = await test.createWebhook()
    const { hostname, port } = new URL(test.api.url)
    const socket = connectSocket(Number(port), hostname)
    socket.write(
      `POST /webhooks/incoming/${webhook.id} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n` +
        `X-Webhook-Secret: ${webhook.secret}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n{"email":`,
    )
    // The server continues once it handles the request.
    await once(socket, 'data')
    socket.destroy()
    const entry = await until(async () => (await test.logs(webhook))[0])
    assert.deepEqual([entry.status, entry.error], ['Failed', 'invalid_payload'])
  })
})

describe('incoming webhooks without their database', () => {
  it('answer 503 with Retry-After, and accept the retry', async () => {
    const test = await startIncoming()
    const webhook = await test.createWebhook()
    const payload = { email: 'later@example.com' }
    const held = await test.db.system.transaction()
    await held.raw('reset role')
    await held.raw('lock table contacts in access exclusive mode')
    const waiting = test.send(webhook, payload)
    await untilBlocked(test.db)
    await held.raw(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )
    const { status, headers, body } = await waiting
    assert.deepEqual([status, body.success, body.error], [503, false, 'unavailable'])
    assert.equal(headers.get('retry-after'), String(body.retry_after))
    await held.rollback()
    assert.equal((await test.send(webhook, payload)).body.action, 'created')
    await test.close()
  })

  it('answer 500 for an unexpected error, without details', async () => {
    const test = await startIncoming()
    const webhook = await test.createWebhook()
    await test.db.system.transaction(async (trx) => {
      await trx.raw('reset role')
      await trx.raw('alter table contacts drop column lead_status cascade')
    })
    const { status, body } = await test.send(webhook, { email: 'fault@example.com' })
    assert.deepEqual(body, {
      success: false,
      error: 'internal_error',
      message: 'something went wrong on our side',
    })
    assert.equal(status, 500)
    const [entry] = await test.logs(webhook)
    assert.deepEqual([entry.status, entry.http_status], ['Failed', 500])
    await test.close()
  })
})

/** An entity bomb ("billion laughs"): nine levels of ten. */
function bomb(): string {
  const entities = Array.from({ length: 9 }, (_, n) => `<!ENTITY l${n + 1} "${`&l${n};`.repeat(10)}">`)
  return `<?xml version="1.0"?><!DOCTYPE lead [<!ENTITY l0 "lol">${entities.join('')}]><lead><email>&l9;</email></lead>`
}

function external(): string {
  return '<!DOCTYPE lead [<!ENTITY file SYSTEM "file:///etc/passwd">]><lead><email>&file;</email></lead>'
}
