import assert from 'node:assert/strict'
import { SENDER_VERIFICATIONS, type SenderVerification } from '../../../db/model/incoming/types.ts'
import { type IncomingTest, startIncoming } from '../../support/incoming.ts'
import { secretFor } from '../../support/sender-requests.ts'
import { NOT_IN_HEADERS, SIGNING, type Sign } from '../../support/sender-signatures.ts'

describe('a captured request with another id in a header', () => {
  let test: IncomingTest
  before(async () => {
    test = await startIncoming()
  })
  after(() => test?.close())

  it('is tried for every verification that signs', () => {
    const signing = SENDER_VERIFICATIONS.filter((type) => !NOT_IN_HEADERS.some((one) => one === type))
    assert.deepEqual(Object.keys(SIGNING).sort(), [...signing].sort())
  })

  const webhookOf = (type: SenderVerification) =>
    test.createWebhook({
      verification: { type },
      secret: secretFor({ type }),
      deduplication: { action: 'Create Anyway' },
      field_mapping: { mode: 'manual', rules: [{ from: 'email', to: 'email' }] },
    })
  const now = () => Math.floor(Date.now() / 1000)

  for (const [type, signed] of Object.entries(SIGNING) as [SenderVerification, Sign][])
    it(`is a repetition: ${type}`, async () => {
      const webhook = await webhookOf(type)
      const url = webhook.url
      const body = type === 'twilio' ? 'email=ada%40x.test' : JSON.stringify({ email: 'ada@x.test' })
      const captured = signed(body, now(), url)
      const send = async (headers: object) => {
        const { status, body: answer } = await test.send(webhook, body, {
          'X-Webhook-Secret': '',
          ...captured,
          ...headers,
        })
        assert.equal(status, 200, JSON.stringify(answer))
        return answer
      }
      const first = await send({ 'Idempotency-Key': 'one' })
      assert.equal(first.action, 'created')
      for (const headers of [
        { 'Idempotency-Key': 'two' },
        {},
        { 'X-GitHub-Delivery': 'three' },
        type === 'standard_webhooks' ? {} : { 'webhook-id': 'four' },
      ]) {
        const again = await send(headers)
        assert.deepEqual(
          [again.message, again.record_id],
          ['already received', first.record_id],
          JSON.stringify(headers),
        )
      }
      const together = await Promise.all(
        ['five', 'six', 'seven'].map((id) => send({ 'Idempotency-Key': id })),
      )
      assert.deepEqual(
        together.map(({ record_id }) => record_id),
        together.map(() => first.record_id),
      )
    })

  it('differs from a retry of its sender, which has its id and another time, and then cannot be repeated either', async () => {
    const webhook = await webhookOf('zendesk')
    const body = JSON.stringify({ email: 'retry@x.test' })
    const id = 'X-Zendesk-Webhook-Invocation-Id'
    const send = async (time: number, value: string) =>
      (
        await test.send(webhook, body, {
          'X-Webhook-Secret': '',
          ...SIGNING.zendesk(body, time, ''),
          [id]: value,
        })
      ).body
    const time = now()
    const first = await send(time, 'one')
    const retry = await send(time + 60, 'one')
    assert.deepEqual([retry.message, retry.record_id], ['already received', first.record_id])
    const captured = await send(time + 60, 'two')
    assert.deepEqual([captured.message, captured.record_id], ['already received', first.record_id])
    const other = await send(time + 120, 'three')
    assert.equal(other.action, 'created')
  })
})
