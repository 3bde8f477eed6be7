import type { IncomingWebhook } from '../../../db/incoming/types.ts'
import { mapAutomatically } from './automatic.ts'
import { mapManually } from './manual.ts'
import type { Mapped } from './types.ts'

/** What the webhook's settings make of a payload. */
export const mapPayload = (
  payload: unknown,
  { field_mapping: mapping, target_entity }: Pick<IncomingWebhook, 'field_mapping' | 'target_entity'>,
): Mapped =>
  mapping.mode === 'manual'
    ? mapManually(payload, mapping.rules, target_entity)
    : mapAutomatically(payload, target_entity)
