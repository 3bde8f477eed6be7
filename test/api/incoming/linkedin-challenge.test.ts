import { deepEqual, equal, match } from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type IncomingTest, startIncoming, type TestWebhook } from '../../support/incoming.ts'

describe('the challenge of LinkedIn', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  // The code of the example in its documentation.
  const code = '890e4665-4dfe-4ab1-b689-ed553bceeed0'
  const ask = ({ id }: TestWebhook, query: string) =>
    test.api.request('GET', `/webhooks/incoming/${id}?${query}`, { key: null })
  const linkedin = () => test.createWebhook({ sender: 'linkedin', secret: 'the client secret of the app' })
  const signed = (text: string, secret: string) => createHmac('sha256', secret).update(text).digest('hex')

  it('is answered with the code and its signature by the client secret', async () => {
    const webhook = await linkedin()
    for (const query of [`challengeCode=${code}`, `challengeCode=${code}&applicationId=7`]) {
      const { status, headers, body } = await ask(webhook, query)
      equal(status, 200)
      match(headers.get('content-type')!, /^application\/json/)
      deepEqual(body, {
        challengeCode: code,
        challengeResponse: signed(code, 'the client secret of the app'),
      })
    }
    const [entry] = await test.logs(webhook)
    deepEqual([entry.status, entry.action], ['Success', 'Skipped'])
    equal(JSON.stringify(entry).includes('the client secret'), false)
  })

  it('signs with the newest secret, once a rotation has begun', async () => {
    const webhook = await linkedin()
    await test.app('POST', `/webhooks/incoming/${webhook.id}/rotate-secret`, {
      secret: 'the second client secret',
    })
    const { body } = await ask(webhook, `challengeCode=${code}`)
    equal(body.challengeResponse, signed(code, 'the second client secret'))
  })

  it('signs nothing but a UUID: a text could be a notification', async () => {
    const webhook = await linkedin()
    const forged = JSON.stringify({ type: 'LEAD_ACTION', email: 'mallory@example.com' })
    for (const text of [forged, `hmacsha256=${forged}`, `${code}\n`, `${code}x`, '', 'x'.repeat(300)]) {
      const { status, body } = await ask(webhook, `challengeCode=${encodeURIComponent(text)}`)
      equal(status, 405, text)
      equal(body.challengeResponse, undefined)
    }
    const other = await test.createWebhook()
    equal((await ask(other, `challengeCode=${code}`)).status, 405)
  })

  it('gives no signature of a request: the code is no body', async () => {
    const webhook = await linkedin()
    const { challengeResponse } = (await ask(webhook, `challengeCode=${code}`)).body
    const types = ['application/x-www-form-urlencoded', 'application/json', 'text/plain']
    for (const body of [code, `"${code}"`])
      for (const type of types) {
        const answer = await test.send(webhook, body, {
          'Content-Type': type,
          'X-Webhook-Secret': '',
          'X-LI-Signature': body === code ? challengeResponse : signed(body, 'the client secret of the app'),
        })
        equal(answer.status, 401, `${body} ${type}`)
      }
  })

  it('takes nothing of the minute of the webhook, and blocks an address that asks without end', async () => {
    const webhook = await linkedin()
    let statuses: number[] = []
    for (let n = 0; n < 22; n++)
      statuses = [...statuses, (await ask(webhook, `challengeCode=${code}`)).status]
    equal(statuses.filter((status) => status === 200).length, 20)
    equal(statuses.at(-1), 429)
    const used = await test.db.system('incoming_logs').where({ webhook_id: webhook.id, status: 'Success' })
    equal(used.length, 20)
  })

  it('and its notifications are verified by their signature', async () => {
    const webhook = await linkedin()
    const body = JSON.stringify({
      type: 'LEAD_ACTION',
      leadGenFormResponse: 'urn:li:leadGenFormResponse:1-5',
      leadAction: 'CREATED',
    })
    const send = (secret: string) =>
      test.send(webhook, body, {
        'X-Webhook-Secret': '',
        'X-LI-Signature': signed(`hmacsha256=${body}`, secret),
      })
    equal((await send('another client secret')).status, 401)
    const right = await send('the client secret of the app')
    deepEqual([right.status, right.body.action], [200, 'skipped'])
  })
})
