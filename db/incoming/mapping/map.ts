import { note as notes } from '../../records/model/kinds/note.ts'
import { firstCharacters } from '../../records/model/values.ts'
import type { IncomingWebhook } from '../types.ts'
import { mapAutomatically } from './automatic.ts'
import { leaves } from './leaves.ts'
import { mapManually } from './manual.ts'
import type { SenderRequest } from './senders/types.ts'
import type { Mapped } from './types.ts'
import { unmappedOf } from './unmapped.ts'

/** Maps a payload by the settings of the webhook. */
export function mapPayload(
  payload: unknown,
  { field_mapping: mapping, target_entity }: Pick<IncomingWebhook, 'field_mapping' | 'target_entity'>,
  headers: SenderRequest['headers'] = {},
): Mapped {
  const all = leaves(payload)
  const mapped =
    mapping.mode === 'manual'
      ? mapManually(payload, mapping.rules, target_entity)
      : mapAutomatically(payload, target_entity, headers, all)
  return { ...truncateNote(mapped), ...(mapped.isPing ? {} : unmappedOf(all, mapping, mapped)) }
}

/** Truncates a note that is too long, instead of refusing the payload. */
function truncateNote(mapped: Mapped): Mapped {
  const max = notes.fields.body!.max!
  const whole = mapped.note?.trim() ?? ''
  const note = firstCharacters(whole, max)
  if (note === whole) return mapped
  const warning = `the note was truncated to ${max} characters`
  return { ...mapped, note, warnings: [...(mapped.warnings ?? []), warning] }
}
