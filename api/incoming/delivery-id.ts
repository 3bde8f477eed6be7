import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Delivery } from '../../db/incoming/deliveries.ts'
import type { Verification } from '../../db/model/incoming/types.ts'
import { signedForm } from './signatures.ts'

/** Headers with a delivery id, which a sender repeats in a retry. */
const HEADERS = [
  'webhook-id',
  'svix-id',
  'idempotency-key',
  'x-github-delivery',
  'x-shopify-webhook-id',
  'x-wc-webhook-delivery-id',
  'linear-delivery',
  'x-zendesk-webhook-invocation-id',
  'x-gitlab-event-uuid',
  'x-atlassian-webhook-identifier',
]

/**
 * Senders that sign the body alone, with an id or a time in each body. Anybody who has read such a request could repeat
 * it with another id, so the body is the id. A generic `hmac` signs the body alone too, but its bodies may be equal.
 */
const SIGN_BODY_ALONE: Verification['type'][] = [
  'github',
  'meta',
  'shopify',
  'intercom',
  'linear',
  'typeform',
]

/**
 * @param payload if the body was parsed.
 * @param known the id that a known sender has in its body.
 */
export function deliveryOf(
  headers: IncomingHttpHeaders,
  verification: Verification,
  bytes: Buffer,
  payload?: unknown,
  known?: string,
): Delivery {
  const ofBody = () => sha256('\n').update(bytes).digest()
  // The token of a retry is not signed, nor the order of a form: what is signed is the id.
  if (verification.type === 'twilio')
    return { fingerprint: sha256('twilio\n').update(signedForm(bytes)).digest(), has_delivery_id: true }
  if (SIGN_BODY_ALONE.includes(verification.type)) return { fingerprint: ofBody(), has_delivery_id: true }
  const header = HEADERS.find((name) => headers[name])
  if (header)
    return {
      fingerprint: sha256(`${header} ${headers[header]}\n`).update(bytes).digest(),
      has_delivery_id: true,
    }
  // A retry of Stripe says anew how many webhooks are pending.
  const event = verification.type === 'stripe' ? idOf(payload ?? parsed(bytes)) : undefined
  if (event) return { fingerprint: sha256(`stripe ${event}`).digest(), has_delivery_id: true }
  if (known) return ofKnown(known, bytes)
  return { fingerprint: ofBody(), has_delivery_id: false }
}

/**
 * The delivery of a record of a batch: by the id that its sender gives it, else by the batch and its position. A batch is
 * written in several transactions, so that each record must be found again when the sender repeats it.
 */
export function deliveryOfItem(
  batch: Delivery,
  index: number,
  bytes: Buffer,
  known: string | undefined,
): Delivery {
  if (known) return ofKnown(known, bytes)
  return {
    fingerprint: sha256(`item ${index} `).update(batch.fingerprint).digest(),
    has_delivery_id: true,
  }
}

/** With the body: Jotform sends an edited submission with the id of the first one. */
const ofKnown = (id: string, bytes: Buffer): Delivery => ({
  fingerprint: sha256(`known ${id}\n`).update(bytes).digest(),
  has_delivery_id: true,
})

const sha256 = (text: string) => createHash('sha256').update(text)

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
