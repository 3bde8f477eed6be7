import type { Delivery } from '../../db/incoming/deliveries.ts'
import type { MappedPayload, MappedRequest } from '../../db/model/incoming/map-body.ts'
import { senderHeaders } from '../../db/model/incoming/mapping/senders/index.ts'
import type { Call } from './call.ts'
import { deliveryOf } from './delivery-id.ts'

/** The records of a body without its compression, and what the mapping of the webhook makes of each. */
export async function mapRequest({
  ctx,
  deps,
  webhook,
  mask,
  content,
  contentType,
}: Call): Promise<MappedRequest> {
  const { headers } = ctx.req
  const type = contentType ?? headers['content-type'] ?? ''
  const body = { content: content!, type, headers: senderHeaders(headers) }
  const parsed = await deps.compute.mapRequest(webhook.organization_id, body, webhook)
  // The payload becomes part of the run's history.
  return mask.mayBeIn(content!) ? mask.value(parsed) : parsed
}

/** The delivery of a request that has one record. */
export const deliveryOfRecord = (
  { ctx, webhook }: Call,
  bytes: Buffer,
  { payload, mapped }: Pick<MappedPayload, 'payload' | 'mapped'>,
): Delivery => deliveryOf(ctx.req.headers, webhook.verification, bytes, payload, mapped.deliveryId)
