import type { Kind } from './kind.ts'
import type { AgxRecord, RecordInput } from './schemas.ts'
import { lookupKey, singleKeys } from './upsert-keys.ts'

/** A key of a record that was merged into another: the other is found by it, too. */
export interface AlternateKey {
  field: string
  /** As it was written. */
  value: string
}

/** The fields that list further addresses, each with the field whose look-ups find them. */
const LISTS = { other_emails: 'email', other_phones: 'phone' } as const
type ListField = keyof typeof LISTS

/** The further addresses of a record, as keys. */
export const listedKeys = (record: Readonly<Record<string, unknown>>): (AlternateKey & { of: ListField })[] =>
  (Object.keys(LISTS) as ListField[]).flatMap((of) =>
    ((record[of] ?? []) as string[]).map((value) => ({ field: LISTS[of], value, of })),
  )

/** The further addresses of a winner, with those and the own ones of the loser; none for kinds without such fields. */
export function mergedLists(kind: Kind, winner: AgxRecord, loser: AgxRecord): RecordInput {
  const merged = (list: ListField, own: string[]) => {
    const values = [winner[list], own.map((name) => loser[name]), loser[list]].flat(2)
    const texts = values.filter((value): value is string => typeof value === 'string')
    return texts.filter(
      (value, place) => texts.findIndex((other) => other.toLowerCase() === value.toLowerCase()) === place,
    )
  }
  return kind.fields.other_emails
    ? {
        other_emails: merged('other_emails', ['email']),
        other_phones: merged('other_phones', ['phone', 'mobile_phone']),
      }
    : {}
}

const isSame = (one: AlternateKey, { field, value }: AlternateKey): boolean =>
  one.field === field && lookupKey(field, one.value) === lookupKey(field, value)

/** The alternate keys of a winner, with those and the own keys of the loser, except what the winner has as its own. */
export function mergedKeys(kind: Kind, winner: AgxRecord, loser: AgxRecord): AlternateKey[] {
  const ofLoser = singleKeys(kind.entity)
    .reverse()
    .flatMap((field): AlternateKey[] => {
      const value = loser[field]
      return typeof value === 'string' && !isOwn(winner, { field, value }) ? [{ field, value }] : []
    })
  const kept = [...keysOf(winner), ...keysOf(loser)]
  return [...kept, ...ofLoser].filter(
    (key, place, all) => all.findIndex((other) => isSame(other, key)) === place,
  )
}

const keysOf = ({ alternate_keys }: AgxRecord) => alternate_keys as AlternateKey[]

const isOwn = (record: AgxRecord, { field, value }: AlternateKey): boolean =>
  typeof record[field] === 'string' && lookupKey(field, record[field]) === lookupKey(field, value)

/**
 * A patch without the values that the record has as alternate keys or further addresses: a system that still has the key
 * of the loser would replace that of the winner, which another system has.
 */
export function withoutAlternateKeys(patch: RecordInput, record: AgxRecord): RecordInput {
  const keys = [...keysOf(record), ...listedKeys(record)]
  if (keys.length === 0) return patch
  const rest = { ...patch }
  for (const field of new Set(keys.map((key) => key.field))) {
    const value = patch[field]
    if (typeof value === 'string' && keys.some((key) => isSame(key, { field, value }))) delete rest[field]
  }
  return rest
}
