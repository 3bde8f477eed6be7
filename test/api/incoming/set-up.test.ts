import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/webhooks/${name}`, import.meta.url))

describe('senders that can set no header', () => {
  let test: IncomingTest
  before(async () => {
    const log = { write: (line: string) => lines.push(line) }
    test = await startIncoming({ PUBLIC_URL: 'https://agx.example', LOG_LEVEL: 'trace' }, log as never)
  })
  after(() => test?.close())

  const lines: string[] = []
  const token = { verification: { type: 'token' } }
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    test.api.request(method, path, { key: null, ...(body === undefined ? {} : { body }), headers })
  const pathOf = (webhook: TestWebhook) => `/webhooks/incoming/${webhook.id}`
  const detailOf = async (webhook: TestWebhook) => {
    const [entry] = await test.logs(webhook)
    return (await test.app('GET', `${pathOf(webhook)}/logs/${entry.id}`)).body
  }

  it('have the secret in the query or in the path', async () => {
    const webhook = await test.createWebhook(token)
    const { url_with_token } = webhook as TestWebhook & { url_with_token: string }
    assert.equal(url_with_token, `https://agx.example${pathOf(webhook)}?token=${webhook.secret}`)
    const ada = { email: 'ada@example.com' }
    const send = async (path: string) => (await call('POST', path, ada)).status
    assert.equal(await send(`${pathOf(webhook)}?token=${webhook.secret}`), 200)
    assert.equal(await send(`${pathOf(webhook)}/${webhook.secret}`), 200)
    assert.equal(await send(`${pathOf(webhook)}?token=wrong`), 401)
    assert.equal(await send(pathOf(webhook)), 401)
    assert.equal(await send(`${pathOf(webhook)}/a/b`), 404)
    assert.ok(lines.some((line) => line.includes('/webhooks/incoming/{webhook_id}')))
    assert.ok(!lines.join('').includes(webhook.secret))
    const plain = await test.createWebhook()
    assert.equal(await send(`${pathOf(plain)}?token=${encodeURIComponent(plain.secret)}`), 401)
  })

  it('accept a base64 secret as a token, with its plus signs', async () => {
    const secret = 'whsec_ab+cd/ef+gh/ijkl=='
    const webhook = await test.createWebhook({ ...token, secret })
    for (const written of [secret, encodeURIComponent(secret)])
      assert.equal(
        (await call('POST', `${pathOf(webhook)}?token=${written}`, { email: 'b@example.com' })).status,
        200,
      )
  })

  it('ask with a POST of a challenge alone, which is repeated: monday.com', async () => {
    const webhook = await test.createWebhook({ sender: 'monday.com' })
    const path = `${pathOf(webhook)}?token=${webhook.secret}`
    const answer = await call('POST', path, { challenge: '3eZbrw1aBm2rZgRNFdxV' })
    assert.deepEqual([answer.status, answer.body], [200, { challenge: '3eZbrw1aBm2rZgRNFdxV' }])
    assert.equal((await detailOf(webhook)).message, 'challenge: nothing was written')
    assert.equal((await call('POST', `${pathOf(webhook)}?token=wrong`, { challenge: 'x' })).status, 401)
    for (const other of [
      { challenge: 'x', email: 'd@example.com' },
      { challenge: 'x'.repeat(501) },
      { challenge: 7 },
    ])
      assert.equal((await call('POST', path, other)).body.challenge, undefined)
    const signed = await test.createWebhook()
    const headers = { 'X-Webhook-Secret': signed.secret }
    assert.equal((await call('POST', pathOf(signed), { challenge: 'x' }, headers)).status, 400)
  })

  it('ask with a header that is repeated, and is in no log: Asana', async () => {
    const webhook = await test.createWebhook({ sender: 'asana' })
    const path = `${pathOf(webhook)}?token=${webhook.secret}`
    const secret = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
    const before = lines.length
    for (const body of [undefined, {}]) {
      const answer = await call('POST', path, body, { 'X-Hook-Secret': secret })
      assert.deepEqual([answer.status, answer.headers.get('x-hook-secret')], [200, secret])
    }
    const detail = await detailOf(webhook)
    assert.deepEqual([detail.message, detail.status], ['challenge: nothing was written', 'Success'])
    assert.ok(!JSON.stringify(detail).includes(secret) && !lines.slice(before).join('').includes(secret))
    const forged = await call('POST', `${pathOf(webhook)}?token=wrong`, {}, { 'X-Hook-Secret': secret })
    assert.deepEqual([forged.status, forged.headers.get('x-hook-secret')], [401, null])
    // An event is signed with it, and is none.
    const signed = { 'X-Hook-Secret': secret, 'X-Hook-Signature': 'a'.repeat(64) }
    const events = [{ action: 'changed', resource: { gid: '1', resource_type: 'task' }, user: { gid: '2' } }]
    const event = await call('POST', path, { events }, signed)
    assert.deepEqual(
      [event.status, event.headers.get('x-hook-secret'), event.body.action],
      [200, null, 'skipped'],
    )
    // Asana looks whether the URL is there.
    assert.equal((await call('POST', path, { events: [] })).status, 200)
    for (const odd of ['x'.repeat(201), 'a b', 'ü'.normalize('NFD')])
      assert.equal(
        (await call('POST', path, {}, { 'X-Hook-Secret': encodeURI(odd) })).headers.get('x-hook-secret'),
        null,
      )
    const other = await test.createWebhook()
    const refused = await call('POST', pathOf(other), {}, { 'X-Hook-Secret': secret })
    assert.deepEqual([refused.status, refused.headers.get('x-hook-secret')], [401, null])
  })

  it('send that header with what they have to say, which is written', async () => {
    const headers = { 'X-Hook-Secret': 'b537207f20cbfa02' }
    const ask = async (values: object, body?: object) => {
      const webhook = await test.createWebhook(values)
      const answer = await call('POST', `${pathOf(webhook)}?token=${webhook.secret}`, body, headers)
      return [answer.headers.get('x-hook-secret') !== null, answer.body.action]
    }
    const subscriber = { email_address: 'kit@example.com', state: 'active' }
    assert.deepEqual(await ask(token, { email: 'hook@example.com' }), [false, 'created'])
    assert.deepEqual(await ask({ sender: 'kit' }, { subscriber }), [false, 'created'])
    assert.deepEqual(await ask({ sender: 'kit' }, {}), [false, 'skipped'])
    for (const values of [token, { sender: 'asana' }])
      for (const body of [undefined, {}]) assert.deepEqual(await ask(values, body), [true, 'skipped'])
  })

  it('send a token that the owner copies from the log: Notion', async () => {
    const webhook = await test.createWebhook({ sender: 'notion' })
    const path = `${pathOf(webhook)}?token=${webhook.secret}`
    const asked = await call('POST', path, {
      verification_token: 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl',
    })
    assert.deepEqual([asked.status, asked.body.message], [200, 'ping of Notion: nothing was written'])
    assert.match((await detailOf(webhook)).payload, /secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl/)
    assert.equal(
      (await call('POST', `${pathOf(webhook)}?token=wrong`, { verification_token: 'x' })).status,
      401,
    )
  })

  it('get the text that they take for success: Dropbox Sign', async () => {
    const webhook = await test.createWebhook({ sender: 'dropbox_sign' })
    const send = async (event_type: string, more: object = {}) => {
      const event_time = String(Math.floor(Date.now() / 1000))
      const event_hash = createHmac('sha256', webhook.secret)
        .update(event_time + event_type)
        .digest('hex')
      const json = JSON.stringify({ event: { event_type, event_time, event_hash }, ...more })
      const body = `--b\r\nContent-Disposition: form-data; name="json"\r\n\r\n${json}\r\n--b--\r\n`
      const answer = await call('POST', pathOf(webhook), body, {
        'Content-Type': 'multipart/form-data; boundary=b',
      })
      assert.deepEqual([answer.status, answer.body], [200, 'Hello API Event Received'], event_type)
      assert.match(answer.headers.get('content-type')!, /^text\/plain/)
      return (await detailOf(webhook)).message
    }
    assert.equal(await send('callback_test'), 'ping of Dropbox Sign: nothing was written')
    assert.match(await send('template_created', { template: { title: 'Contract' } }), /nothing was written$/)
    const signature_request = {
      title: 'Contract',
      requester_email_address: 'grace@host.example',
      signatures: [
        { signature_id: 's1', signer_email_address: 'bob@example.com', signer_name: 'Bob' },
        { signature_id: 's2', signer_email_address: 'signer@example.com', signer_name: 'Ada Lovelace' },
      ],
    }
    assert.match(await send('signature_request_sent', { signature_request }), /nothing was written$/)
    assert.equal(
      await send('signature_request_signed', {
        signature_request: { ...signature_request, signatures: signature_request.signatures.slice(1) },
      }),
      'contact created',
    )
  })

  it('use HTTP basic', async () => {
    const webhook = await test.createWebhook({ verification: { type: 'basic', username: 'form' } })
    const Authorization = `Basic ${Buffer.from(`form:${webhook.secret}`).toString('base64')}`
    assert.equal(
      (await call('POST', pathOf(webhook), { email: 'c@example.com' }, { Authorization })).status,
      200,
    )
    assert.equal((await detailOf(webhook)).headers.authorization, '[masked]')
    const asked = await call('POST', pathOf(webhook), {})
    assert.deepEqual([asked.status, asked.body.error], [401, 'missing_secret'])
    assert.match(asked.headers.get('www-authenticate')!, /^Basic /)
  })

  it('send a multipart form: Jotform, whose answers are opened and whose copy of the token is masked', async () => {
    const webhook = await test.createWebhook(token)
    const path = `${pathOf(webhook)}?token=${webhook.secret}`
    const body = fixture('jotform.multipart').toString().replaceAll('{url}', `https://agx.example${path}`)
    const type = { 'Content-Type': 'multipart/form-data; boundary=------------------------c0ffee' }
    const answer = await call('POST', path, body, { ...type, Referer: `https://agx.example${path}` })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    const contact = await test.contact(answer.body.record_id)
    assert.deepEqual(
      [contact.first_name, contact.last_name, contact.email, contact.job_title, contact.address?.city],
      ['Ada', 'Lovelace', 'ada@example.com', null, 'London'],
    )
    assert.equal(contact.phone.replace(/\D/g, ''), '2079460000')
    const detail = await detailOf(webhook)
    assert.ok(!JSON.stringify(detail).includes(webhook.secret))
    assert.match(detail.payload, /token=\[masked\]/)
    assert.match(detail.headers.referer, /token=\[masked\]$/)
  })

  it('look with GET whether the URL exists: Mailchimp', async () => {
    const webhook = await test.createWebhook(token)
    const right = await call('GET', `${pathOf(webhook)}?token=${webhook.secret}`)
    assert.deepEqual([right.status, right.body.record_id], [200, null])
    const { result } = await detailOf(webhook)
    assert.deepEqual([result.success, result.entity, result.record_id], [true, null, null])
    assert.equal((await call('GET', `${pathOf(webhook)}?token=wrong`)).status, 401)
    assert.equal((await call('PUT', `${pathOf(webhook)}?token=${webhook.secret}`, {})).status, 405)
  })

  it('ask with a GET challenge: Meta', async () => {
    const webhook = await test.createWebhook({ verification: { type: 'meta' } })
    const ask = (secret: string) =>
      call(
        'GET',
        `${pathOf(webhook)}?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${encodeURIComponent(secret)}`,
      )
    const right = await ask(webhook.secret)
    assert.deepEqual([right.status, right.body], [200, '1158201444'])
    assert.match(right.headers.get('content-type')!, /^text\/plain/)
    assert.ok(right.headers.get('x-ratelimit-limit'))
    const wrong = await ask('wrong')
    assert.deepEqual([wrong.status, wrong.body.error], [401, 'invalid_secret'])
  })

  it('ask with a signed challenge: Slack', async () => {
    const webhook = await test.createWebhook({ verification: { type: 'slack' } })
    const body = JSON.stringify({ token: 'x', challenge: '3eZbrw1aB', type: 'url_verification' })
    const time = String(Math.floor(Date.now() / 1000))
    const mac = createHmac('sha256', webhook.secret).update(`v0:${time}:${body}`).digest('hex')
    const signed = { 'X-Slack-Request-Timestamp': time, 'X-Slack-Signature': `v0=${mac}` }
    assert.deepEqual((await call('POST', pathOf(webhook), body, signed)).body, { challenge: '3eZbrw1aB' })
    assert.equal((await call('POST', pathOf(webhook), body)).status, 401)
  })
})

describe('the challenge of Zoom', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  it('is a signed POST, whose token is answered with its signature', async () => {
    const webhook = await test.createWebhook({ sender: 'zoom' })
    const ask = (plainToken: unknown, secret: string) => {
      const body = JSON.stringify({ event: 'endpoint.url_validation', event_ts: 1, payload: { plainToken } })
      const time = String(Math.floor(Date.now() / 1000))
      const mac = createHmac('sha256', secret).update(`v0:${time}:${body}`).digest('hex')
      const signed = { 'X-Zm-Request-Timestamp': time, 'X-Zm-Signature': `v0=${mac}` }
      return test.send(webhook, body, { 'X-Webhook-Secret': '', ...signed })
    }
    const right = await ask('qgg8vlvZRS6UYooatFL8Aw', webhook.secret)
    const encryptedToken = createHmac('sha256', webhook.secret).update('qgg8vlvZRS6UYooatFL8Aw').digest('hex')
    assert.deepEqual(
      [right.status, right.body],
      [200, { plainToken: 'qgg8vlvZRS6UYooatFL8Aw', encryptedToken }],
    )
    assert.equal((await ask('qgg8vlvZRS6UYooatFL8Aw', 'another secret')).status, 401)
    const odd = await ask({ a: 1 }, webhook.secret)
    assert.deepEqual([odd.status, odd.body.action], [200, 'skipped'])
  })
})

describe('senders that agx knows', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  it('are listed, and set the verification of a new webhook', async () => {
    const { body } = await test.api.request('GET', '/v1/webhooks/incoming/senders')
    const ids = body.data.map(({ id }: { id: string }) => id)
    assert.ok(ids.length >= 20 && ids.includes('zendesk') && ids.includes('stripe'), ids.join())
    for (const { id, verification, documentation } of body.data) {
      const secret = verification.type === 'svix' ? `whsec_${Buffer.alloc(32).toString('base64')}` : undefined
      const made = await test.app('POST', '/webhooks/incoming', {
        name: id,
        sender: id,
        ...(secret && { secret }),
      })
      assert.deepEqual(made.body.verification, verification, id)
      assert.match(documentation, /^https:\/\//)
    }
    const own = { type: 'token' }
    const other = await test.app('POST', '/webhooks/incoming', {
      name: 'x',
      sender: 'stripe',
      verification: own,
    })
    assert.deepEqual(other.body.verification, own)
    const unknown = { name: 'x', sender: 'acme' }
    const refused = await test.app('POST', '/webhooks/incoming', unknown, 422)
    assert.ok(JSON.stringify(refused.body).includes('sender'))
  })
})
