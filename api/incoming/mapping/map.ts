import type { IncomingWebhook } from '../../../db/incoming/types.ts'
import { note as notes } from '../../../db/records/model/kinds/note.ts'
import { firstCharacters } from '../../../db/records/model/values.ts'
import { mapAutomatically } from './automatic.ts'
import { mapManually } from './manual.ts'
import type { Mapped } from './types.ts'

/** What the webhook's settings make of a payload. */
export const mapPayload = (
  payload: unknown,
  { field_mapping: mapping, target_entity }: Pick<IncomingWebhook, 'field_mapping' | 'target_entity'>,
): Mapped =>
  withinNote(
    mapping.mode === 'manual'
      ? mapManually(payload, mapping.rules, target_entity)
      : mapAutomatically(payload, target_entity),
  )

/** A note that is too long is no reason to refuse the rest: what it can hold is kept. */
function withinNote(mapped: Mapped): Mapped {
  const max = notes.fields.body!.max!
  const whole = mapped.note?.trim() ?? ''
  const note = firstCharacters(whole, max)
  if (note === whole) return mapped
  const warning = `the note is longer than ${max} characters: the rest was left out`
  return { ...mapped, note, warnings: [...(mapped.warnings ?? []), warning] }
}
