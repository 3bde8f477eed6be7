import { z } from 'zod'
import { fieldTypes, type Operator } from '../field-types.ts'
import type { FieldType } from '../kind.ts'
import { inZone, isLocal } from '../values.ts'
import { isInRange, MAX_JSON_DEPTH, MAX_TEXT, NUMBER_RANGE, nestingOf } from './shape.ts'

export const CUSTOM_FIELD_TYPES = [
  'text',
  'number',
  'boolean',
  'date',
  'datetime',
  'select',
  'multi_select',
  'url',
  'email',
  'phone',
  'json',
] as const
export type CustomFieldType = (typeof CUSTOM_FIELD_TYPES)[number]

/** A custom field's definition, as stored. */
export interface Definition {
  type: CustomFieldType
  label: string
  description: string | null
  required: boolean
  unique: boolean
  /** For select and multi_select; null for other types. */
  options: string[] | null
  /** The default of new records; null: none. */
  default: unknown
  version: number
  created_at: string
  updated_at: string
}

/** A definition with its name, as the API shows it. */
export type NamedDefinition = Definition & { name: string }

/** The rules for a kind's custom fields. */
export interface Rules {
  definitions: Record<string, Definition>
  /** Whether only fields with a definition may be written. */
  strict: boolean
}

/** A value in its stored form, or the reason why it does not match the type. */
export type Reading = { value: unknown } | { msg: string }

/** Everything that depends on the type of a custom field. */
interface TypeOf {
  /** Parses a value from a client, a form or a CSV file. Idempotent. */
  read(value: unknown, options: string[]): Reading
  operators: Operator[]
  /** Compared case-insensitively. */
  isText?: true
  /** Parses a filter value; undefined if it does not match the type. */
  filterValue(text: string): string | undefined
  /** Whether a text is a possible value in a cursor. Default: `filterValue` accepts it. */
  cursorValue?(text: string): boolean
  /** The expected value, for errors. */
  expects: string
  sortable: boolean
  /** Whether full-text search includes it. */
  searchable: boolean
  /** Whether a definition may be unique. */
  canBeUnique: boolean
}

const DECIMAL = /^[+-]?\d{1,16}(\.\d{1,20})?$/

const BOOLEANS: Record<string, boolean> = {
  true: true,
  yes: true,
  on: true,
  1: true,
  false: false,
  no: false,
  off: false,
  0: false,
}

const date = z.iso.date().refine((day) => !day.startsWith('0000'))

const text: TypeOf = {
  read(value) {
    const written = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    if (typeof written !== 'string') return { msg: 'must be a string' }
    const trimmed = written.trim()
    return trimmed.length > MAX_TEXT
      ? { msg: `must have at most ${MAX_TEXT} characters` }
      : { value: trimmed }
  },
  operators: fieldTypes.text.operators,
  isText: true,
  filterValue: fieldTypes.text.filterValue,
  expects: 'a text',
  sortable: true,
  searchable: true,
  canBeUnique: true,
}

export const customTypes: Record<CustomFieldType, TypeOf> = {
  text,
  number: {
    read(value) {
      const number = typeof value === 'string' && DECIMAL.test(value.trim()) ? Number(value) : value
      if (typeof number !== 'number' || !Number.isFinite(number))
        return { msg: 'must be a number, such as 12.5' }
      if (!isInRange(number)) return { msg: NUMBER_RANGE }
      // JSON has a negative zero, PostgreSQL's numeric has none.
      return { value: number === 0 ? 0 : number }
    },
    operators: fieldTypes.money.operators,
    filterValue: (value) => (DECIMAL.test(value) ? value : undefined),
    cursorValue: (value) => /^-?\d{1,400}(\.\d{1,400})?$/.test(value),
    expects: 'a number such as 12.5',
    sortable: true,
    searchable: true,
    canBeUnique: true,
  },
  boolean: {
    read(value) {
      const read = typeof value === 'string' ? BOOLEANS[value.trim().toLowerCase()] : value
      return typeof read === 'boolean' ? { value: read } : { msg: 'must be true or false' }
    },
    operators: fieldTypes.boolean.operators,
    filterValue: fieldTypes.boolean.filterValue,
    expects: 'true or false',
    sortable: true,
    searchable: false,
    canBeUnique: false,
  },
  date: {
    read(value) {
      const parsed = typeof value === 'string' ? date.safeParse(value.trim()) : undefined
      return parsed?.success ? { value: parsed.data } : { msg: 'must be a valid date such as 2026-01-31' }
    },
    operators: fieldTypes.datetime.operators,
    filterValue: fieldTypes.date.filterValue,
    expects: fieldTypes.date.expects,
    sortable: true,
    searchable: true,
    canBeUnique: true,
  },
  datetime: {
    // Local times have been given their zone, except those of defaults.
    read(value) {
      const reading = readTime(value, [])
      return 'value' in reading && isLocal(String(reading.value))
        ? { value: inZone(String(reading.value), 'UTC') }
        : reading
    },
    operators: fieldTypes.datetime.operators,
    filterValue: fieldTypes.datetime.filterValue,
    expects: fieldTypes.datetime.expects,
    sortable: true,
    searchable: true,
    canBeUnique: true,
  },
  select: {
    ...text,
    read(value, options) {
      const option = optionOf(value, options)
      return option === undefined ? { msg: `must be one of ${options.join(', ')}` } : { value: option }
    },
    operators: fieldTypes.enum.operators,
  },
  multi_select: {
    read(value, options) {
      const found = toList(value, options)?.map((item) => optionOf(item, options))
      return !found || found.includes(undefined)
        ? { msg: `must be a list of ${options.join(', ')}` }
        : { value: [...new Set(found)] }
    },
    operators: ['has', 'has_not', 'is_null'],
    filterValue: fieldTypes.text.filterValue,
    expects: 'one of the options',
    sortable: false,
    searchable: true,
    canBeUnique: false,
  },
  url: { ...text, read: readAsNative('url', 'must be an http or https URL') },
  email: { ...text, read: readAsNative('email', 'must be an email address') },
  phone: {
    ...text,
    read: readAsNative('phone', 'must be a phone number'),
    filterValue: fieldTypes.phone.filterValue,
  },
  json: {
    read: (value) =>
      nestingOf(value) > MAX_JSON_DEPTH
        ? { msg: `must not be nested deeper than ${MAX_JSON_DEPTH} levels` }
        : { value },
    operators: ['is_null'],
    filterValue: () => undefined,
    expects: 'is_null',
    sortable: false,
    searchable: true,
    canBeUnique: false,
  },
}

/** The types that may be unique. */
export const UNIQUE_TYPES = CUSTOM_FIELD_TYPES.filter((type) => customTypes[type].canBeUnique)

export const readValue = (definition: Pick<Definition, 'type' | 'options'>, value: unknown): Reading =>
  customTypes[definition.type].read(value, definition.options ?? [])

const readTime = readAsNative('datetime', 'must be a valid time such as 2026-01-31T09:00:00Z')

/** Parses a value as a native field of this type does. */
function readAsNative(type: FieldType, msg: string): TypeOf['read'] {
  const schema = fieldTypes[type].input({ type, description: '' })
  return (value) => {
    const parsed = schema.safeParse(value)
    return parsed.success ? { value: parsed.data } : { msg }
  }
}

/** The option as defined, found case-insensitively. */
function optionOf(value: unknown, options: string[]): string | undefined {
  if (typeof value !== 'string') return undefined
  const wanted = value.trim()
  return options.includes(wanted)
    ? wanted
    : options.find((option) => option.toLowerCase() === wanted.toLowerCase())
}

/** A list, or a text such as `a;b` from a form or a CSV file. */
function toList(value: unknown, options: string[]): unknown[] | undefined {
  if (Array.isArray(value)) return value
  if (typeof value !== 'string') return undefined
  return optionOf(value, options) === undefined ? value.split(';') : [value]
}
