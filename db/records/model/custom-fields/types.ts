import { z } from 'zod'
import { fieldTypes, type Operator } from '../field-types.ts'
import type { FieldType } from '../kind.ts'
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

/** What an organization says of one custom field, as it is stored. */
export interface Definition {
  type: CustomFieldType
  label: string
  description: string | null
  required: boolean
  unique: boolean
  /** Of select and multi_select; null of the others. */
  options: string[] | null
  /** What a new record gets where it has no value; null where it gets none. */
  default: unknown
  version: number
  created_at: string
  updated_at: string
}

/** A definition with its name, as the API shows it. */
export type NamedDefinition = Definition & { name: string }

/** What the custom fields of a kind must be. */
export interface Rules {
  definitions: Record<string, Definition>
  /** Whether only what has a definition may be written. */
  strict: boolean
}

/** A value in the one form in which it is kept, or why it is none of the type. */
export type Reading = { value: unknown } | { msg: string }

/** Everything that differs between types of custom fields. */
interface TypeOf {
  /** Reads what a client, a form or a CSV file writes; what it gave it reads again as the same. */
  read(value: unknown, options: string[]): Reading
  operators: Operator[]
  /** Compared without regard to case. */
  isText?: true
  /** Parses a filter value; undefined where it is not one of the type. */
  filterValue(text: string): string | undefined
  /** Whether a text can be a value in a cursor; default: whether it can be one of a filter. */
  cursorValue?(text: string): boolean
  /** What a value must look like, for errors. */
  expects: string
  sortable: boolean
  /** Whether free-text search finds it. */
  searchable: boolean
  /** Whether a definition can ask for values that no two records share. */
  canBeUnique: boolean
}

const DECIMAL = /^[+-]?\d{1,16}(\.\d{1,20})?$/

const BOOLEANS: Record<string, boolean> = {
  ...{ true: true, yes: true, on: true, 1: true },
  ...{ false: false, no: false, off: false, 0: false },
}

const date = z.iso.date().refine((day) => !day.startsWith('0000'))

const text: TypeOf = {
  read(value) {
    const written = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    if (typeof written !== 'string') return { msg: 'must be a text' }
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
      return parsed?.success
        ? { value: parsed.data }
        : { msg: 'must be a date that exists, such as 2026-01-31' }
    },
    operators: fieldTypes.datetime.operators,
    filterValue: (value) => date.safeParse(value).data,
    expects: 'a date such as 2026-01-31',
    sortable: true,
    searchable: true,
    canBeUnique: true,
  },
  datetime: {
    read: through('datetime', 'must be a time that exists, such as 2026-01-31T09:00:00Z'),
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
      const found = listed(value, options)?.map((item) => optionOf(item, options))
      return !found || found.includes(undefined)
        ? { msg: `must be a list of ${options.join(', ')}` }
        : { value: [...new Set(found)] }
    },
    operators: ['has', 'is_null'],
    filterValue: fieldTypes.text.filterValue,
    expects: 'one of the options',
    sortable: false,
    searchable: true,
    canBeUnique: false,
  },
  url: { ...text, read: through('url', 'must be an http or https address') },
  email: { ...text, read: through('email', 'must be an email address') },
  phone: {
    ...text,
    read: through('phone', 'must be a phone number'),
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

/** Those that a definition can ask to be unique. */
export const UNIQUE_TYPES = CUSTOM_FIELD_TYPES.filter((type) => customTypes[type].canBeUnique)

export const readValue = (definition: Pick<Definition, 'type' | 'options'>, value: unknown): Reading =>
  customTypes[definition.type].read(value, definition.options ?? [])

/** Reads as the native field of this type does. */
function through(type: FieldType, msg: string): TypeOf['read'] {
  const schema = fieldTypes[type].input({ type, description: '' })
  return (value) => {
    const parsed = schema.safeParse(value)
    return parsed.success ? { value: parsed.data } : { msg }
  }
}

/** The option as it was defined, for people write it in other cases. */
function optionOf(value: unknown, options: string[]): string | undefined {
  if (typeof value !== 'string') return undefined
  const wanted = value.trim()
  return options.includes(wanted)
    ? wanted
    : options.find((option) => option.toLowerCase() === wanted.toLowerCase())
}

/** A list, or as forms and CSV files write one: `a;b`. */
function listed(value: unknown, options: string[]): unknown[] | undefined {
  if (Array.isArray(value)) return value
  if (typeof value !== 'string') return undefined
  return optionOf(value, options) === undefined ? value.split(';') : [value]
}
