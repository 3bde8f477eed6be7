import { isNumeric } from '../../workflows/shared/decimal.ts'
import { isNegation } from '../../workflows/shared/operators.ts'
import { associatedKind, IMPORT_ID, LAST_ACTIVITY, LIST_ID } from '../../workflows/shared/related-filters.ts'
import { type CustomFieldType, customTypes } from '../model/records/custom-fields/types.ts'
import type { Rates } from '../model/records/exchange-rates.ts'
import { fieldTypes, type Operator } from '../model/records/field-types.ts'
import {
  customName,
  type Filter,
  isList,
  knownHop,
  typeOf,
  WHOLE_VALUE_OPERATORS,
} from '../model/records/filters.ts'
import type { Fragment } from '../model/records/fragment.ts'
import { type FieldType, isNeverNull, type Kind } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { escapeLike } from '../model/records/like.ts'
import type { Order, Sort } from '../model/records/sorts.ts'
import { inZone, isLocal } from '../model/records/values.ts'
import { indexedRanges, type WorthRange, worthSql } from '../model/records/worth.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import {
  associationCondition,
  hopCondition,
  importCondition,
  LAST_ACTIVITY_SQL,
  listCondition,
} from './related-filters.ts'

/** Filters and sort keys as SQL. Field names come from the kind or have passed `customName`; values are bound. */

/** The SQL condition of a filter. `zone`: of dates and of times without an offset. */
export function condition(
  { organizationId }: Pick<Tenant, 'organizationId'>,
  kind: Kind,
  filter: Filter,
  zone = 'UTC',
): Fragment {
  const { field, operator, values } = filter
  const hop = knownHop(kind, field)
  if (hop)
    return hopCondition(organizationId, kind, hop, filter, (one) =>
      condition({ organizationId }, kinds[hop.kind], one, zone),
    )
  if (values.length === 0) return { sql: String(isNegation(operator)), bindings: [] }
  if (field === 'tags')
    return operator === 'has' || operator === 'has_not'
      ? { sql: negatedIf(operator, HAS_TAG), bindings: values }
      : { sql: `(tags = '{}') = ?::boolean`, bindings: values }
  if (isList(typeOf(kind, field)?.type ?? ''))
    return operator === 'is_null'
      ? { sql: `(${field} = '{}') = ?::boolean`, bindings: values }
      : {
          sql: negatedIf(operator, `exists (select from unnest(${field}) item where lower(item) = lower(?))`),
          bindings: values,
        }
  const associated = associatedKind(field)
  if (associated) return associationCondition(organizationId, kind, associated, filter)
  if (field === IMPORT_ID) return importCondition(organizationId, filter)
  if (field === LIST_ID) return listCondition(organizationId, filter)
  const custom = customName(field)
  if (operator === 'has' || operator === 'has_not')
    return { sql: negatedIf(operator, hasItem(`custom_fields -> '${custom}'`)), bindings: values }
  if (operator === 'is_null') {
    const column = field === LAST_ACTIVITY ? LAST_ACTIVITY_SQL : field
    return {
      sql: `(${custom === undefined ? column : `custom_fields ->> '${custom}'`} is null) = ?::boolean`,
      bindings: values,
    }
  }
  const {
    sql: comparison,
    type,
    isTime,
  } = custom !== undefined && isNumberRange(filter)
    ? UNDEFINED_NUMBER(custom)
    : filter.rates
      ? worth(field, filter.rates)
      : comparable(kind, field, filter.type)
  const isExact = EXACT.includes(field) && WHOLE_VALUE_OPERATORS.includes(operator)
  const column = isExact
    ? field
    : RANGES.includes(operator)
      ? inOrder(kind, field, comparison, type)
      : comparison
  // PostgreSQL lower-cases both sides: JavaScript lower-cases differently.
  const value = type !== 'text' ? `(?::${type})` : isExact ? '?::text' : 'lower(?)'
  const bindings = isTime ? boundsOf(operator, values, zone) : values
  const range = `${column} between ${value} and ${value}`
  const list = () => `${column} in (${values.map(() => value).join(', ')})`
  if (isTime && WHOLE_VALUE_OPERATORS.includes(operator) && values.some(isBareDate)) {
    const within = `(${values.map(() => range).join(' or ')})`
    // A negated condition also matches null.
    const sql = isNegation(operator) ? `${within} is not true` : within
    return { sql, bindings: values.flatMap((value) => [startOf(value, zone), endOf(value, zone)]) }
  }
  switch (operator) {
    case 'between':
      return { sql: range, bindings }
    case 'in':
      return { sql: list(), bindings }
    case 'nin':
      return { sql: `(${list()}) is not true`, bindings }
    case 'not_since':
      return { sql: `(${column} >= ${value}) is not true`, bindings }
    case 'contains':
      return { sql: `${column} like ${value}`, bindings: [`%${escapeLike(values[0]!)}%`] }
    case 'starts_with':
      return { sql: `${column} like ${value}`, bindings: [`${escapeLike(values[0]!)}%`] }
    default:
      return { sql: `${column} ${COMPARISONS[operator]} ${value}`, bindings }
  }
}

/**
 * Whether a custom field without a definition is compared with numbers: then its values are compared as numbers too,
 * since as texts 5000 would be more than 10000.
 */
const isNumberRange = ({ operator, type, values }: Filter): boolean =>
  type === undefined && operator !== 'not_since' && RANGES.includes(operator) && values.every(isNumeric)

/** The operators that compare by the order of a list. */
const RANGES: Operator[] = ['gt', 'gte', 'lt', 'lte', 'between', 'not_since']

const HAS_TAG = 'exists (select from unnest(tags) tag where lower(tag) = lower(?))'

const negatedIf = (operator: Filter['operator'], sql: string) => (isNegation(operator) ? `not ${sql}` : sql)

/** Ids of Salesforce differ by case alone: whole values are compared as they are unique, and as an upsert finds them. */
const EXACT = ['external_id']

const COMPARISONS = { eq: '=', ne: 'is distinct from', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

/**
 * For times, a date without a time means the whole day in the time zone, as a range that an index can serve. Times have
 * milliseconds, so a day ends with its last millisecond.
 */
function boundsOf(operator: Operator, values: string[], zone: string): string[] {
  if (operator === 'between') return [startOf(values[0]!, zone), endOf(values[1]!, zone)]
  const bound = operator === 'gt' || operator === 'lte' ? endOf : startOf
  return values.map((value) => bound(value, zone))
}

/** Whether a value, as returned by `filterValue` of times, is a date without a time. */
const isBareDate = (value: string): boolean => value.length === 10

/** In the years 1 and 9999 a zone may lead out of the years that PostgreSQL has: then the bound is in UTC. */
const startOf = (value: string, zone: string): string =>
  isLocal(value) ? (inZone(value, zone) ?? inZone(value, 'UTC')!) : value

function endOf(value: string, zone: string): string {
  if (!isBareDate(value)) return startOf(value, zone)
  const next = new Date(Date.parse(`${value}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10)
  const after = inZone(next, zone)
  return after === undefined ? `${value}T23:59:59.999Z` : new Date(Date.parse(after) - 1).toISOString()
}

const DAY_MS = 86_400_000

export interface SortKey {
  order: Order
  sql: string
  /** The SQL type that a cursor's value is cast to. */
  type: string
  nullable: boolean
  /** Whether the kind has an index in this order. */
  indexed: boolean
  /** Whether a text is a possible value. */
  isValue: (text: string) => boolean
  /** Amounts of several currencies, by their worth. */
  isConverted?: true
  /** The parts of an index that together are all of these with a value. */
  ranges?: WorthRange[]
}

/** Longer texts are sorted by their beginning, since each cursor contains a value. */
const MAX_SORTED = 200

/**
 * The sort keys of a sortable field. `customType`: the type of a custom field with a definition. One without sorts its
 * numbers by value, then its texts: as texts, 5000 would come after 10000.
 */
export function sortKeys(kind: Kind, sort: Sort, customType?: CustomFieldType): SortKey[] {
  const key = sortKey(kind, sort, customType)
  const custom = customName(sort.field)
  if (custom === undefined || customType !== undefined) return [key]
  const { sql, type } = UNDEFINED_NUMBER(custom)
  return [{ order: sort.order, sql, type, nullable: true, indexed: false, isValue: isNumeric }, key]
}

function sortKey(kind: Kind, { field, order, rates }: Sort, customType?: CustomFieldType): SortKey {
  if (rates) {
    const isServed = kind.fields[field]!.sorted && rates.isWhole
    return {
      order,
      // Unrounded, so that the order within a currency is that of its amounts.
      sql: worthSql(field, rates, { rounded: false }),
      type: 'numeric',
      nullable: true,
      indexed: false,
      isValue: isNumeric,
      isConverted: true,
      ...(isServed && { ranges: indexedRanges(field, rates) }),
    }
  }
  const { sql, type } = comparable(kind, field, customType)
  const custom = customType && customTypes[customType]
  if (custom && !custom.isText) {
    const isValue = custom.cursorValue ?? ((text: string) => custom.filterValue(text) !== undefined)
    return { order, sql, type, nullable: true, indexed: false, isValue }
  }
  const own = kind.fields[field]
  const { max = 0, sorted = false } = own ?? {}
  const isLong = customName(field) !== undefined || (type === 'text' && max > MAX_SORTED)
  const { filterValue } = fieldTypes[typeOf(kind, field)!.type as FieldType]
  return {
    order,
    sql: inOrder(kind, field, isLong ? `left(${sql}, ${MAX_SORTED})` : sql, type),
    type,
    nullable: !(own ? isNeverNull(own) : NEVER_NULL.includes(field)),
    indexed: sorted || INDEXED.includes(field),
    isValue: (text) => filterValue(text) !== undefined,
  }
}

const NEVER_NULL = ['id', 'version', 'created_at', 'updated_at']
/** The fields whose order every kind has an index for. */
const INDEXED = ['created_at', 'updated_at']

/**
 * Texts are ordered as people expect, whatever the locale of the database is: Äpfel beside Apfel. The columns that serve
 * sorts have this collation themselves.
 */
const inOrder = (kind: Kind, field: string, sql: string, type: string): string =>
  type === 'text' && !kind.fields[field]?.sorted ? `${sql} collate "und-x-icu"` : sql

interface Comparable {
  /** Text in lower case, from a lower-case column if there is one, so that an index can serve. */
  sql: string
  /** The SQL type that values are cast to. */
  type: string
  isTime: boolean
}

function comparable(kind: Kind, field: string, customType: CustomFieldType = 'text'): Comparable {
  const custom = customName(field)
  if (custom !== undefined)
    return { ...CUSTOM_COLUMNS[customType](custom), isTime: customType === 'datetime' }
  if (field === LAST_ACTIVITY) return { sql: LAST_ACTIVITY_SQL, type: 'timestamptz', isTime: true }
  const fieldType = typeOf(kind, field)!.type as FieldType
  // The other types are ids.
  const type = fieldTypes[fieldType].isText ? 'text' : (TYPES[fieldType] ?? 'uuid')
  const isTime = fieldType === 'datetime'
  const isLowered =
    field === 'external_id' || field === 'email' || (fieldType === 'text' && kind.fields[field]?.sorted)
  if (isLowered) return { sql: `${field}_lower`, type, isTime }
  // A domain is stored in lower case.
  return { sql: type === 'text' && fieldType !== 'domain' ? `lower(${field})` : field, type, isTime }
}

const worth = (field: string, rates: Rates): Comparable => ({
  sql: worthSql(field, rates, { rounded: true }),
  type: 'numeric',
  isTime: false,
})

const TYPES: Partial<Record<FieldType, string>> = {
  integer: 'integer',
  money: 'numeric',
  decimal: 'numeric',
  boolean: 'boolean',
  date: 'date',
  datetime: 'timestamptz',
  address: 'jsonb',
}

type CustomColumn = (name: string) => Pick<Comparable, 'sql' | 'type'>

const text: CustomColumn = (name) => ({ sql: `lower(custom_fields ->> '${name}')`, type: 'text' })
const json: CustomColumn = (name) => ({ sql: `custom_fields -> '${name}'`, type: 'jsonb' })

/** A time in its stored form sorts as text: RFC 3339, in UTC, with milliseconds. */
const time =
  (like: string): CustomColumn =>
  (name) => ({
    sql: `(case when custom_fields ->> '${name}' like '${like}' then custom_fields ->> '${name}' end) collate "C"`,
    type: 'text collate "C"',
  })

/** Null for a value that is no number, in JSON or as a text. */
const UNDEFINED_NUMBER = (name: string): Comparable => ({
  sql: `case when custom_fields ->> '${name}' ~ '^-{0,1}[0-9]{1,20}([.][0-9]{1,12}){0,1}$' then (custom_fields ->> '${name}')::numeric end`,
  type: 'numeric',
  isTime: false,
})

/** Null if the stored value does not have the type, so that no cast or comparison fails. */
const CUSTOM_COLUMNS: Record<CustomFieldType, CustomColumn> = {
  text,
  select: text,
  url: text,
  email: text,
  phone: text,
  number: (name) => ({
    sql: `case jsonb_typeof(custom_fields -> '${name}') when 'number' then (custom_fields ->> '${name}')::numeric end`,
    type: 'numeric',
  }),
  boolean: (name) => ({
    sql: `case custom_fields -> '${name}' when 'true' then true when 'false' then false end`,
    type: 'boolean',
  }),
  date: time('____-__-__'),
  datetime: time('____-__-__T__:__:__.___Z'),
  multi_select: json,
  json,
}

/** Items are compared as text: `has=5` finds 5 and "5". A value that is not a list counts as a list of one. */
const hasItem = (json: string) =>
  `exists (
     select from jsonb_array_elements_text(
       case jsonb_typeof(${json}) when 'array' then ${json} else jsonb_build_array(${json}) end
     ) item where lower(item) = lower(?)
   )`
