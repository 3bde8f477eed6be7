import { isObject } from '../../../../workflows/shared/is-object.ts'
import { note as notes } from '../../records/kinds/note.ts'
import { firstCharacters } from '../../records/values.ts'
import { type IncomingWebhook, pathOfKey } from '../types.ts'
import { mapAutomatically } from './automatic.ts'
import { leaves } from './leaves.ts'
import { mapManually } from './manual.ts'
import { textAt } from './path.ts'
import { deliveryIdOf } from './senders/index.ts'
import type { SenderRequest } from './senders/types.ts'
import type { Mapped } from './types.ts'
import { unmappedOf } from './unmapped.ts'

type MappingSettings = Pick<IncomingWebhook, 'field_mapping' | 'kind'> &
  Partial<Pick<IncomingWebhook, 'deduplication'>>

/** Maps a payload by the settings of the webhook. */
export function mapPayload(
  payload: unknown,
  { field_mapping: mapping, kind, deduplication }: MappingSettings,
  headers: SenderRequest['headers'] = {},
): Mapped {
  const all = leaves(payload)
  const id = isObject(payload) ? deliveryIdOf({ headers, payload }) : undefined
  const found =
    mapping.mode === 'manual'
      ? mapManually(payload, mapping.rules, kind)
      : mapAutomatically(payload, kind, headers, all)
  const mapped = found.skip ? found : withKeyAt(payload, found, deduplication)
  return {
    ...truncateNote(mapped),
    ...(mapped.skip ? {} : unmappedOf(all, mapping, mapped)),
    ...(id === undefined ? {} : { deliveryId: id }),
  }
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

/** The value at the path of the deduplication is the record's external_id, whatever else is mapped to it. */
function withKeyAt(
  payload: unknown,
  mapped: Mapped,
  deduplication: MappingSettings['deduplication'],
): Mapped {
  const path = deduplication && pathOfKey(deduplication)
  const key = path && textAt(payload, path)
  if (!key) return mapped
  return {
    ...mapped,
    fields: { ...mapped.fields, external_id: key },
    sources: { ...mapped.sources, external_id: path },
  }
}
