import type { AlternateKey } from './alternate-keys.ts'
import { commonFields } from './common-fields.ts'
import { fieldTypes } from './field-types.ts'
import type { Field, Kind } from './kind.ts'
import type { AgxRecord } from './schemas.ts'
import { searchText } from './search-text.ts'

const COMMON = ['external_id', 'owner_id', 'tags', 'custom_fields'] as const

/** The columns that writes set, in the order of the statements. */
export const writableColumns = (kind: Kind): string[] => [...Object.keys(kind.fields), ...COMMON]

/** All columns in the API. */
export const shownColumns = (kind: Kind): string[] => [
  'id',
  ...writableColumns(kind),
  'alternate_keys',
  'version',
  'created_at',
  'updated_at',
  'created_by',
  'updated_by',
]

/** The API's representation of a row. */
export function present(kind: Kind, row: Record<string, unknown>): AgxRecord {
  const record: Record<string, unknown> = { object: kind.object }
  for (const column of shownColumns(kind)) {
    const value = row[column]
    record[column] = value instanceof Date ? value.toISOString() : money(kind.fields[column], value)
  }
  return record as AgxRecord
}

/** PostgreSQL's numeric keeps the written scale, such as `0`; money always shows two decimal places. */
function money(field: Field | undefined, value: unknown): unknown {
  if (field?.type !== 'money' || typeof value !== 'string') return value ?? null
  const [whole, places = ''] = value.split('.')
  return `${whole}.${places.padEnd(2, '0')}`
}

const COMMON_SEARCHABLE = Object.keys(commonFields).filter(
  (name) => 'searchable' in commonFields[name as keyof typeof commonFields],
)

/** The text of a record for full-text search. */
export function searchTextOf(kind: Kind, record: Record<string, unknown>): string {
  const own = Object.entries(kind.fields).map(
    ([name, { type }]) => record[name] != null && fieldTypes[type].searched?.(record[name]),
  )
  const alternates = (record.alternate_keys as AlternateKey[]).map(({ value }) => value)
  return searchText([...own, ...COMMON_SEARCHABLE.map((name) => record[name]), alternates])
}
