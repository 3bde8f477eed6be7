import type { KindName } from './kind.ts'
import { kinds } from './kinds/index.ts'
import type { RecordInput } from './schemas.ts'

/** The upsert key: the field by which an upsert finds its record. */

/** The native upsert keys of a kind. */
export const upsertKeys = (kind: KindName): string[] => [...kinds[kind].upsertKeys, 'external_id']

/** The upsert keys that are one field of the record alone. */
export const singleKeys = (kind: KindName): string[] =>
  upsertKeys(kind).filter((name) => !isIdentity(kind, name))

/** Whether the field is the first of those that are the key of a record together. */
export const isIdentity = (kind: KindName, name: string): boolean => kinds[kind].identity?.[0] === name

/** The key of a record by its `identity`; undefined without a value of one of the fields. */
export function identityKey(kind: KindName, fields: Readonly<Record<string, unknown>>): string | undefined {
  const { identity = [], fields: defined } = kinds[kind]
  const values = identity.map((name) => fields[name] ?? defined[name]!.default)
  return values.every((value) => typeof value === 'string')
    ? JSON.stringify(values.map((value) => value.toLowerCase()))
    : undefined
}

const CUSTOM = 'custom_fields.'

/** The name of the custom field in `by`; undefined for a native field. */
export const customKey = (by: string): string | undefined =>
  by.startsWith(CUSTOM) ? by.slice(CUSTOM.length) : undefined

/** Whether `by` may be an upsert key: a native one, or `custom_fields.<name>`, whose definition must be unique. */
export const isUpsertKey = (kind: KindName, by: string): boolean =>
  upsertKeys(kind).includes(by) || by.startsWith(CUSTOM)

/** The form in which values of a native field are compared. */
export const lookupKey = (field: string, value: string): string =>
  field === 'email' || field === 'name' ? value.toLowerCase() : value

/** The value of the upsert key in a record, as text; undefined if it has none. */
export function upsertKey(by: string, fields: RecordInput): string | undefined {
  const custom = customKey(by)
  const value =
    custom === undefined ? fields[by] : (fields.custom_fields as RecordInput | null | undefined)?.[custom]
  return typeof value === 'string' || (custom !== undefined && typeof value === 'number')
    ? String(value)
    : undefined
}
