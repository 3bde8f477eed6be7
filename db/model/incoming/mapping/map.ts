import { isObject } from '../../../../workflows/shared/is-object.ts'
import { note as notes } from '../../records/kinds/note.ts'
import { firstCharacters } from '../../records/values.ts'
import { withoutOthers } from '../further-kinds.ts'
import { entityOf } from '../target-entity.ts'
import {
  type FieldMapping,
  FURTHER_KINDS,
  type IncomingWebhook,
  type Listener,
  pathOfKey,
  type TargetKind,
} from '../types.ts'
import { mapAutomatically } from './automatic.ts'
import { leaves } from './leaves.ts'
import { holds, mapManually } from './manual.ts'
import { textAt } from './path.ts'
import { isNoRecord, updatesBy } from './record-key.ts'
import { deliveryIdOf, SENDERS, senderOf } from './senders/index.ts'
import type { SenderRequest } from './senders/types.ts'
import type { Mapped } from './types.ts'
import { unmappedOf } from './unmapped.ts'

type MappingConfig = Pick<IncomingWebhook, 'field_mapping' | 'kind'> &
  Partial<Pick<IncomingWebhook, 'deduplication' | 'listeners' | 'sender' | 'also_writes'>>

/** Maps a payload by the settings of the webhook. */
export function mapPayload(
  payload: unknown,
  settings: MappingConfig,
  headers: SenderRequest['headers'] = {},
): Mapped {
  const { field_mapping: mapping, kind, deduplication, listeners = [] } = settings
  const { sender: chosen = null, also_writes = FURTHER_KINDS } = settings
  const request = isObject(payload) ? { headers, payload } : undefined
  const id = request && deliveryIdOf(request, chosen)
  const isPing = () => request !== undefined && senderOf(request, chosen)?.isPing?.(request) === true
  const known = ({ skip }: Pick<Mapped, 'skip'>): Pick<Mapped, 'deliveryId' | 'listeners'> => ({
    ...(id === undefined ? {} : { deliveryId: id }),
    ...(listeners.length > 0
      ? { listeners: isPing() ? [] : startedBy(listeners, payload, skip === undefined) }
      : {}),
  })
  if (kind === 'none') {
    const found = { fields: {}, sources: {}, ...(request ? pingIn(request, chosen) : {}) }
    return { ...ofChosen(found, chosen), ...known(found) }
  }
  const all = leaves(payload)
  const found =
    mapping.mode === 'manual'
      ? { ...mapManually(payload, mapping.rules, kind), ...(request ? pingIn(request, chosen) : {}) }
      : mapAutomatically(payload, kind, headers, all, chosen)
  const keyed = found.skip ? found : withKeyAt(payload, found, deduplication)
  // A payload without a known shape is one of the chosen sender.
  const sent = withSender(keyed, chosen)
  const whole = isNothing(sent, mapping, kind, deduplication) ? nothingOf(sent, kind) : sent
  const mapped = withoutOthers(whole, also_writes)
  return {
    ...ofChosen(truncateNote(mapped), chosen),
    ...(mapped.skip ? {} : unmappedOf(all, mapping, mapped)),
    ...known(mapped),
  }
}

/** The places of the listeners that a payload starts: one that writes no record, only those whose condition chose it. */
const startedBy = (listeners: Listener[], payload: unknown, isWritten: boolean): number[] =>
  [...listeners.keys()].filter((place) => {
    const { when } = listeners[place]!
    return when === undefined ? isWritten : holds(when, payload)
  })

/**
 * Whether an event of a known sender says nothing of a record: a sender of many kinds of events would take refusals for an
 * outage, and end the webhook. But an opt-out of somebody unknown must be seen, and of which people none was chosen.
 */
function isNothing(
  mapped: Mapped,
  field_mapping: FieldMapping,
  kind: TargetKind,
  deduplication: MappingConfig['deduplication'],
): boolean {
  const { sender, skip, fields, warnings } = mapped
  if (sender === undefined || skip !== undefined || !isNoRecord(mapped, kind)) return false
  if (fields.do_not_contact === true || (field_mapping.mode === 'automatic' && warnings)) return false
  return !deduplication || updatesBy({ kind, deduplication, field_mapping }, mapped) === undefined
}

/** The sources stay: the log tells which rules found a value. */
const nothingOf = ({ sender, sources }: Mapped, kind: TargetKind): Mapped => ({
  fields: {},
  sources,
  sender: sender!,
  skip: `the payload of ${sender} has nothing of a ${entityOf(kind)}`,
})

const nameOf = (chosen: string | null) => SENDERS.get(chosen ?? '')?.name

function withSender(mapped: Mapped, chosen: string | null): Mapped {
  const sender = mapped.sender ?? nameOf(chosen)
  return sender === undefined ? mapped : { ...mapped, sender }
}

/** Says so of a payload that is plainly of another sender than the chosen one. */
function ofChosen(mapped: Mapped, chosen: string | null): Mapped {
  const { sender, warnings = [] } = mapped
  const expected_sender = nameOf(chosen)
  if (expected_sender === undefined || sender === undefined || sender === expected_sender) return mapped
  const warning = `the payload is one of ${sender}, and not of ${expected_sender}, which is the sender of the webhook`
  return { ...mapped, expected_sender, warnings: [...warnings, warning] }
}

/** The sender of a request, and whether it is the ping of a set-up. */
function pingIn(request: SenderRequest, chosen: string | null): Pick<Mapped, 'sender' | 'skip'> {
  const sender = senderOf(request, chosen)
  if (!sender) return {}
  return { sender: sender.name, ...(sender.isPing?.(request) ? { skip: `ping of ${sender.name}` } : {}) }
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
function withKeyAt(payload: unknown, mapped: Mapped, deduplication: MappingConfig['deduplication']): Mapped {
  const path = deduplication && pathOfKey(deduplication)
  const key = path && textAt(payload, path)
  if (!key) return mapped
  return {
    ...mapped,
    fields: { ...mapped.fields, external_id: key },
    sources: { ...mapped.sources, external_id: path },
  }
}
