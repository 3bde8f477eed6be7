import { kinds } from '../../records/kinds/index.ts'
import { upsertKey } from '../../records/upsert-keys.ts'
import type { IncomingWebhook, TargetKind } from '../types.ts'
import type { Mapped } from './types.ts'

/** What decides by which field a payload finds its record. */
export type KeySettings = Pick<IncomingWebhook, 'deduplication' | 'field_mapping'> & { kind: TargetKind }

/** The field whose value identifies duplicates. */
export function keyFieldOf({ kind, deduplication: { by } }: Omit<KeySettings, 'field_mapping'>): string {
  if (by.startsWith('custom_fields.')) return by
  return by === 'email' && kinds[kind].fields.email ? 'email' : 'external_id'
}

/** Whether a mapping has nothing of what a record of the kind needs: the tags of an event are no contact. */
export function isNoRecord({ fields }: Pick<Mapped, 'fields'>, kind: TargetKind): boolean {
  const { atLeastOneOf, fields: known } = kinds[kind]
  const needed = atLeastOneOf ?? Object.keys(known).filter((name) => known[name]!.required)
  return needed.every((name) => fields[name] === undefined)
}

/**
 * The field by which a payload finds the record that it updates, if it has nothing of what a new record needs: an event
 * may say what happened to a user by their id alone. Undefined if it makes a record, or names none. That any `id` of a
 * sender that is not known is one of the kind would be a guess: there the rules, or the deduplication, must say so.
 */
export function updatesBy(settings: KeySettings, mapped: Mapped): string | undefined {
  const { kind, deduplication, field_mapping } = settings
  if (deduplication.action === 'Create Anyway' || !isNoRecord(mapped, kind)) return undefined
  const isKnown = mapped.sender !== undefined || field_mapping.mode === 'manual'
  const keys = [
    ...(deduplication.by === 'email' ? [] : [keyFieldOf(settings)]),
    ...(isKnown ? ['external_id'] : []),
  ]
  return keys.find((field) => upsertKey(field, mapped.fields) !== undefined)
}
