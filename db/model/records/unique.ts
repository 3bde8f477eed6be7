import { createHash } from 'node:crypto'
import type { Rules } from './custom-fields/types.ts'
import type { AgxRecord } from './schemas.ts'

/** The unique values of a kind's records: external_ids, and the values of unique custom fields. */

/** A value of a unique custom field. */
export interface UniqueValue {
  name: string
  /** The result of `uniqueKey`. */
  key: string
}

/** The normalised value for comparisons: case-insensitive text. */
export function uniqueKey(value: unknown): string {
  const key = (typeof value === 'string' ? value : JSON.stringify(value)).normalize('NFC').toLowerCase()
  // PostgreSQL indexes values of at most 2,700 bytes.
  return key.length > 200 ? `sha256:${createHash('sha256').update(key).digest('hex')}` : key
}

/** Whether any of a kind's custom fields is unique. */
export const hasUnique = ({ definitions }: Rules): boolean =>
  Object.values(definitions).some((definition) => definition.unique)

/** The unique values among `custom_fields`. */
export const uniqueValues = ({ definitions }: Rules, customFields: unknown): UniqueValue[] =>
  Object.entries((customFields ?? {}) as object)
    .filter(([name]) => Object.hasOwn(definitions, name) && definitions[name]!.unique)
    .map(([name, value]) => ({ name, key: uniqueKey(value) }))

/** The unique values of a record, as pairs of field path and key. */
export const uniqueKeys = (rules: Rules, { external_id, custom_fields }: AgxRecord): [string, string][] => [
  ...(typeof external_id === 'string' ? [['external_id', external_id] as [string, string]] : []),
  ...uniqueValues(rules, custom_fields).map(({ name, key }): [string, string] => [
    `custom_fields.${name}`,
    key,
  ]),
]
