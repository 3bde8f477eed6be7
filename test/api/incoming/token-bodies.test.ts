import { deepEqual, equal } from 'node:assert/strict'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'
import { tokenOf } from '../../support/sender-requests.ts'

const secret = 'key-of-dialpad-0123456789abcdef'
const call = (more: object = {}) => ({
  call_id: 1,
  state: 'hangup',
  contact: { id: 'c', name: 'Ada Lovelace', email: '', phone: '+442079460000' },
  target: { id: 5, type: 'user', name: 'Grace Hopper', email: 'grace@host.example' },
  ...more,
})

describe('a body that is a token of Dialpad', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  const webhookOf = (more: object = {}) => test.createWebhook({ sender: 'dialpad', secret, ...more })
  const send = (webhook: TestWebhook, body: string, type: string) =>
    test.api.request('POST', `/webhooks/incoming/${webhook.id}`, {
      key: null,
      body: Buffer.from(body),
      headers: { 'Content-Type': type },
    })

  it('is read as the JSON that it signs, whatever its type is called', async () => {
    const webhook = await webhookOf()
    const types = ['application/jwt', 'text/plain', 'application/json', 'application/x-www-form-urlencoded']
    const ids = new Set<string>()
    for (const [n, type] of types.entries()) {
      const contact = { name: `Ada Lovelace`, email: `ada${n}@example.com` }
      const { status, body } = await send(webhook, tokenOf(JSON.stringify(call({ contact })), secret), type)
      deepEqual([status, body.action], [200, 'created'], type)
      ids.add(body.record_id)
    }
    equal(ids.size, types.length)
  })

  it('is in the log as JSON, and is replayed from there', async () => {
    const webhook = await webhookOf({
      field_mapping: { mode: 'manual', rules: [{ from: 'state', to: 'email' }] },
    })
    const refused = await send(webhook, tokenOf(JSON.stringify(call()), secret), 'application/jwt')
    equal(refused.status, 400)
    const [entry] = await test.logs(webhook)
    const detail = (await test.app('GET', `/webhooks/incoming/${webhook.id}/logs/${entry.id}`)).body
    deepEqual([JSON.parse(detail.payload), detail.replay_problem], [call(), null])
    const { body } = await test.app('POST', `/webhooks/incoming/${webhook.id}/replays`, {
      log_id: entry.id,
      field_mapping: { mode: 'automatic' },
    })
    equal(body.result.outcome, 'created', JSON.stringify(body))
    const { first_name, phone, email } = await test.contact(body.result.record_id)
    deepEqual([first_name, phone, email], ['Ada', '+442079460000', null])
  })

  it('counts once, and is refused if it is changed or no token', async () => {
    const webhook = await webhookOf()
    const token = tokenOf(JSON.stringify(call({ state: 'connected' })), secret)
    equal((await send(webhook, token, 'application/jwt')).body.action, 'created')
    equal((await send(webhook, token, 'text/plain')).body.message, 'already received')
    const [head, , signature] = token.split('.')
    const other = Buffer.from(JSON.stringify(call({ contact: { email: 'eve@example.com' } }))).toString(
      'base64url',
    )
    equal(
      (await send(webhook, `${head}.${other}.${signature}`, 'application/jwt')).body.error,
      'invalid_secret',
    )
    const plain = await send(webhook, JSON.stringify(call()), 'application/json')
    deepEqual([plain.status, plain.body.error], [401, 'missing_secret'])
    const text = await send(webhook, tokenOf('no JSON', secret), 'application/jwt')
    deepEqual([text.status, text.body.error], [400, 'invalid_payload'])
  })
})
