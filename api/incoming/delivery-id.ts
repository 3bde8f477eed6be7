import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Payload } from '../../db/incoming/parse-body.ts'
import type { Verification } from '../../db/incoming/types.ts'

/** Headers with a delivery id, which a sender repeats in a retry. */
const HEADERS = ['webhook-id', 'idempotency-key', 'x-github-delivery', 'x-shopify-webhook-id']

/** SHA-256 of the delivery id and the body: equal only for a retry. Undefined if the sender sends no id. */
export function deliveryFingerprint(
  headers: IncomingHttpHeaders,
  verification: Verification,
  payload: Payload,
  bytes: Buffer,
): Buffer | undefined {
  const header = HEADERS.find((name) => headers[name])
  const id = header ? `${header} ${headers[header]}` : verification.type === 'stripe' && payload.id
  return id ? createHash('sha256').update(`${id}\n`).update(bytes).digest() : undefined
}
