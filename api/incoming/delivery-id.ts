import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import type { Verification } from '../../db/model/incoming/types.ts'

/** Headers with a delivery id, which a sender repeats in a retry. */
const HEADERS = [
  'webhook-id',
  'svix-id',
  'idempotency-key',
  'x-github-delivery',
  'x-shopify-webhook-id',
  'x-wc-webhook-delivery-id',
]

/** @param payload if the body was parsed. */
export function deliveryOf(
  headers: IncomingHttpHeaders,
  verification: Verification,
  bytes: Buffer,
  payload?: unknown,
): Delivery {
  const sha256 = (text: string) => createHash('sha256').update(text)
  const header = HEADERS.find((name) => headers[name])
  if (header)
    return {
      fingerprint: sha256(`${header} ${headers[header]}\n`).update(bytes).digest(),
      has_delivery_id: true,
    }
  // A retry of Stripe says anew how many webhooks are pending.
  const event = verification.type === 'stripe' ? idOf(payload ?? parsed(bytes)) : undefined
  if (event) return { fingerprint: sha256(`stripe ${event}`).digest(), has_delivery_id: true }
  return { fingerprint: sha256('\n').update(bytes).digest(), has_delivery_id: false }
}

function idOf(payload: unknown): string | undefined {
  const { id } = Object(payload)
  return typeof id === 'string' && id !== '' ? id : undefined
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}
