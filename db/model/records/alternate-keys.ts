import type { Kind } from './kind.ts'
import type { AgxRecord, RecordInput } from './schemas.ts'
import { lookupKey, upsertKeys } from './upsert-keys.ts'

/** A key of a record that was merged into another: the other is found by it, too. */
export interface AlternateKey {
  field: string
  /** As it was written. */
  value: string
}

const isSame = (one: AlternateKey, { field, value }: AlternateKey): boolean =>
  one.field === field && lookupKey(field, one.value) === lookupKey(field, value)

/** The alternate keys of a winner, with those and the own keys of the loser, except what the winner has as its own. */
export function mergedKeys(kind: Kind, winner: AgxRecord, loser: AgxRecord): AlternateKey[] {
  const ofLoser = upsertKeys(kind.entity)
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
 * A patch without the values that the record has as alternate keys: a system that still has the key of the loser would
 * replace that of the winner, which another system has.
 */
export function withoutAlternateKeys(patch: RecordInput, record: AgxRecord): RecordInput {
  const keys = keysOf(record)
  if (keys.length === 0) return patch
  const rest = { ...patch }
  for (const field of new Set(keys.map((key) => key.field))) {
    const value = patch[field]
    if (typeof value === 'string' && keys.some((key) => isSame(key, { field, value }))) delete rest[field]
  }
  return rest
}
