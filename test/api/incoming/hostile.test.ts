import assert from 'node:assert/strict'
import { connect as connectSocket } from 'node:net'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'
import { until } from '../../support/until.ts'

describe('hostile requests to incoming webhooks', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming({ REQUEST_TIMEOUT: '2' })
  })
  after(() => test?.close())

  afterEach(async () => {
    const { status } = await test.send(await test.createWebhook(), { email: 'alive@hostile.test' })
    assert.equal(status, 200, 'the next request is served')
  })

  const contacts = async (email: string) =>
    Number(
      (await test.db.system('contacts').where({ email_lower: email }).count({ count: '*' }).first())!.count,
    )

  /** The response to raw bytes until the server ends the connection. Throws if it does not. */
  async function raw(pieces: string[]): Promise<string> {
    const { hostname, port } = new URL(test.api.url)
    const socket = connectSocket(Number(port), hostname)
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      socket.destroy()
    }, 30_000)
    let answer = ''
    try {
      for (const piece of pieces) socket.write(piece, 'latin1')
      for await (const chunk of socket) answer += chunk
    } catch {
      // Reset by the server: the bytes before it count.
    }
    clearTimeout(timer)
    assert.ok(!isLate, 'the server ends the connection')
    return answer
  }

  const head = (webhook: TestWebhook, ...more: string[]) =>
    [
      `POST /webhooks/incoming/${webhook.id} HTTP/1.1`,
      'Host: x',
      'Content-Type: application/json',
      `X-Webhook-Secret: ${webhook.secret}`,
      ...more,
      '\r\n',
    ].join('\r\n')

  for (const [name, body, type] of [
    ['JSON that says it is XML', '{"email":"lie@hostile.test"}', 'application/xml'],
    ['XML that says it is JSON', '<a><email>lie@hostile.test</email></a>', 'application/json'],
    ['a form that says it is JSON', 'email=lie%40hostile.test', 'application/json'],
    ['a form of 5,000 items', 'a[]=1&'.repeat(5_000), 'application/x-www-form-urlencoded'],
    ['a form with __proto__', '__proto__[email]=lie%40hostile.test', 'application/x-www-form-urlencoded'],
    ['a form with an index of a billion', 'email[1000000000]=x', 'application/x-www-form-urlencoded'],
  ] as const)
    it(`${name}: 400, logged, and nothing written`, async () => {
      const webhook = await test.createWebhook()
      const { status, body: answer } = await test.send(webhook, body, { 'Content-Type': type })
      assert.deepEqual([status, answer.success], [400, false], JSON.stringify(answer))
      assert.equal(await contacts('lie@hostile.test'), 0)
      const [entry] = await test.logs(webhook)
      assert.deepEqual([entry.status, entry.http_status], ['Failed', 400])
    })

  it('duplicate keys: the last one counts, for the mapping, the log and the workflow alike', async () => {
    const webhook = await test.createWebhook()
    const { body } = await test.send(webhook, '{"email":"first@hostile.test","email":"last@hostile.test"}')
    assert.equal((await test.contact(body.record_id)).email, 'last@hostile.test')
    assert.equal(await contacts('first@hostile.test'), 0)
  })

  it('a body longer than its Content-Length: the rest is no second request', async () => {
    const webhook = await test.createWebhook()
    const smuggled = `${head(webhook, 'Content-Length: 31')}{"email":"smuggled@hostile.test"}`
    const body = '{"email":"short@hostile.test"}'
    const answer = await raw([
      head(webhook, `Content-Length: ${body.length}`, 'Transfer-Encoding: chunked') + body + smuggled,
    ])
    assert.match(answer, /^HTTP\/1.1 400 /)
    assert.equal(await contacts('smuggled@hostile.test'), 0)
  })

  it('a line end within a header: 400, and no header of its own in an answer', async () => {
    const webhook = await test.createWebhook()
    const answer = await raw([`${head(webhook, 'X-Request-Id: a\rX-Evil: 1', 'Content-Length: 2')}{}`])
    assert.match(answer, /^HTTP\/1.1 400 /)
    assert.doesNotMatch(answer, /^X-Evil/im)
    const encoded = await test.send(
      webhook,
      { email: 'a@hostile.test' },
      { 'X-Request-Id': 'a%0d%0aX-Evil: 1' },
    )
    assert.equal(encoded.headers.get('x-evil'), null)
    const { body } = await test.send(webhook, { email: 'h@hostile.test', first_name: 'A\r\nSet-Cookie: a=b' })
    assert.equal(body.success, true)
  })

  it('a client that stops within the body: its connection ends in time, with a log row and no record', async () => {
    const webhook = await test.createWebhook()
    const answer = await raw([`${head(webhook, 'Content-Length: 100')}{"email":"slow@hostile.test"`])
    assert.match(answer, /^(HTTP\/1.1 4\d\d |$)/)
    const entry = await until(async () => (await test.logs(webhook))[0])
    assert.equal(entry.status, 'Failed')
    assert.equal(await contacts('slow@hostile.test'), 0)
  })

  it('a pattern that hangs a backtracking engine is matched', async () => {
    const evil = '(a+)+$'
    const webhook = await test.createWebhook({
      field_mapping: {
        mode: 'manual',
        rules: [
          { from: 'email', to: 'email' },
          {
            from: 'text',
            to: 'job_title',
            skip_if: evil,
            transforms: [{ type: 'replace', pattern: evil, by: '' }],
            when: { path: 'text', is: 'matching', to: evil },
          },
        ],
      },
    })
    // A backtracking engine needs longer than the universe.
    const { status } = await test.send(webhook, { email: 're@hostile.test', text: `${'a'.repeat(100_000)}!` })
    assert.equal(status, 200)
  })

  it('a secret in a query or a body is not taken for the header', async () => {
    const webhook = await test.createWebhook()
    const body = { email: 'q@hostile.test', secret: webhook.secret, 'X-Webhook-Secret': webhook.secret }
    const answer = await test.api.request(
      'POST',
      `/webhooks/incoming/${webhook.id}?token=${encodeURIComponent(webhook.secret)}`,
      { key: null, body },
    )
    assert.deepEqual([answer.status, answer.body.error], [401, 'missing_secret'])
  })
})
