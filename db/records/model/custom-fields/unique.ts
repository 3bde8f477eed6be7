import { createHash } from 'node:crypto'
import type { Rules } from './types.ts'

/** The values of unique custom fields that a record holds. */

/** A value that no two records of a kind share. */
export interface UniqueValue {
  name: string
  /** What `uniqueKey` makes of the value. */
  key: string
}

/** The form in which two values are compared: text without regard to case. */
export function uniqueKey(value: unknown): string {
  const key = (typeof value === 'string' ? value : JSON.stringify(value)).normalize('NFC').toLowerCase()
  // An index takes at most 2,700 bytes.
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
