import { ENTITY_OF, type IncomingWebhook } from '../../db/incoming/types.ts'
import { createSchema } from '../../db/records/schemas.ts'
import { check } from '../http/validate.ts'
import { toDetails } from './answer.ts'
import { mapPayload } from './mapping/map.ts'
import { parseBody } from './parse-body.ts'

/** What a payload would become, without writing anything. Throws what parsing throws. */
export function testMapping(webhook: IncomingWebhook, sample: { payload: unknown; content_type: string }) {
  const text = typeof sample.payload === 'string' ? sample.payload : JSON.stringify(sample.payload)
  const mapped = mapPayload(parseBody(Buffer.from(text), sample.content_type), webhook)
  const checked = check(createSchema(ENTITY_OF[webhook.target_entity]), mapped.fields, 'body')
  const details = 'issues' in checked ? toDetails(checked.issues) : {}
  return {
    object: 'incoming_webhook_test',
    valid: !('issues' in checked),
    entity: webhook.target_entity.toLowerCase(),
    mapped_data: mapped,
    details,
  }
}
