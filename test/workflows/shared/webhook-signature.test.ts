import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { signatureHeaders } from '../../../workflows/shared/webhook-signature.ts'

describe('signatures of deliveries', () => {
  const body = '{"event":"contact.created","data":{"name":"Zoë"}}'
  const secret = () => `whsec_${randomBytes(32).toString('base64')}`

  it('are accepted by a receiver that uses Standard Webhooks, with either secret during a rotation', () => {
    const [current, previous] = [secret(), secret()]
    const headers = signatureHeaders([current, previous], { id: 'msg_1', timestamp: new Date(), body })
    for (const known of [current, previous]) new Webhook(known).verify(body, headers)
    assert.throws(() => new Webhook(secret()).verify(body, headers))
    assert.throws(() => new Webhook(current).verify(`${body} `, headers))
  })
})
