import { createHash } from 'node:crypto'
import { z } from 'zod'
import { signatureHeaders, standardKey } from '../shared/webhook-signature.ts'
import { defineNode } from './define.ts'
import { errorDetails, headerName, httpUrl, scalar, texts, unexpectedStatus } from './http-fields.ts'

const OWN_HEADER = /^(webhook-.*|content-type|user-agent)$/i

export const sendWebhook = defineNode({
  type: 'send_webhook',
  engine: 4,
  category: 'integration',
  title: 'Send webhook',
  alsoCalled: ['webhook_request', 'post_webhook', 'outgoing_webhook', 'notify_webhook', 'call_webhook'],
  description:
    'Posts a signed message, as outgoing webhooks do: `{id, event, created_at, data}` with the headers of Standard Webhooks. Every attempt has the same id and body, so that the receiver can drop repetitions; other statuses than 2xx are retried as set by `retry`. To let several receivers subscribe, use emit_event.',
  effect: 'external',
  effects: ['http'],
  config: z.strictObject({
    url: httpUrl.describe('The URL of the receiver. Redirects are failures.'),
    secret: z
      .string()
      .refine((text) => standardKey(text) !== undefined, 'must be whsec_ and base64 of 24 to 64 bytes')
      .describe(
        'The secret that signs the message, which the receiver knows too: `{{ secrets.<name> }}`, with a value of `whsec_` and base64 of 24 to 64 bytes.',
      ),
    event: z.string().min(1).max(129).describe('What the message is about, such as `order.ready`.'),
    data: z.record(z.string(), z.unknown()).default({}).describe('The `data` of the message.'),
    headers: z
      .record(
        headerName.refine((name) => !OWN_HEADER.test(name), 'is set by the node'),
        scalar,
      )
      .default({})
      .describe('More headers, such as one that the receiver routes by.'),
  }),
  errorDetails,
  output: z.strictObject({
    id: z.string().describe('The id of the message, which the receiver gets as `webhook-id`.'),
    status: z.int().describe('The status of the response.'),
  }),
  handles: () => [{ name: 'success', description: 'The receiver has answered with 2xx.' }],
  retry: { max_attempts: 6, initial_interval: '5s', backoff: 4 },
  example: {
    config: {
      url: 'https://erp.example.com/hooks/orders',
      secret: '{{ secrets.erp_webhook }}',
      event: 'order.ready',
      data: { deal_id: '{{ trigger.record.id }}', amount: '{{ trigger.record.amount }}' },
    },
    inputs: {
      trigger: { record: { id: '019a0000-0000-7000-8000-000000000001', amount: '1250.00' } },
      secrets: { erp_webhook: `whsec_${'A'.repeat(32)}` },
    },
    output: { id: 'msg_0a19a7a43eaf3b5bce59ca201ce1c62d', status: 201 },
  },
  async run({ url, secret, event, data, headers }, { http, now, idempotencyKey }) {
    // As long as a UUID: receivers may store ids in columns of a fixed length.
    const id = `msg_${createHash('sha256').update(idempotencyKey).digest('hex').slice(0, 32)}`
    const body = JSON.stringify({ id, event, created_at: now.toISOString(), data })
    const response = await http.request({
      method: 'POST',
      url,
      body,
      follow_redirects: false,
      headers: {
        ...texts(headers),
        'content-type': 'application/json',
        'user-agent': 'agx-webhooks',
        ...signatureHeaders([secret], { id, timestamp: new Date(), body }),
      },
    })
    const { status } = response
    // As for outgoing webhooks, 410 means that the receiver is gone.
    if (status < 200 || status > 299) throw unexpectedStatus(response, status !== 410)
    return { output: { id, status } }
  },
})
