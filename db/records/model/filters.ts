import { nearest } from '../../../workflows/definition/errors.ts'
import { operandsOf } from '../../../workflows/operators.ts'
import type { Issue } from '../../errors.ts'
import { commonFields } from './common-fields.ts'
import { type CustomFieldType, customTypes } from './custom-fields/types.ts'
import { fieldTypes, type Operator } from './field-types.ts'
import type { FieldType, Kind } from './kind.ts'
import { byWholeDays, isBareDate } from './whole-days.ts'

/**
 * Field filters of lists: `stage=won`, `amount[gte]=1000`, `custom_fields.tier[in]=gold,silver`. Text compares without
 * regard to case, a whole one in the form in which a write keeps it; a bare date among times is the whole day; `ne` and
 * `nin` include null; a custom field without a definition filters as text.
 */
export interface Filter {
  field: string
  operator: Operator
  /** One value; two for `between`, any number for `in` and `nin`. In the form that SQL takes. */
  values: string[]
  /** Of a custom field that has a definition. */
  type?: CustomFieldType
}

export interface Fragment {
  sql: string
  bindings: unknown[]
}

/** The fields of every kind whose values compare as those of a kind's own fields do. */
const COMMON: Record<string, FieldType> = Object.fromEntries(
  Object.entries(commonFields).flatMap(([name, { type }]) =>
    type === 'tags' || type === 'custom_fields' || type === 'actor' ? [] : [[name, type]],
  ),
)

/** Of one query. */
export const MAX_FILTERS = 50
/** Of all filters together: PostgreSQL binds at most 65,535 in a statement. */
export const MAX_VALUES = 10_000

export const CUSTOM = /^custom_fields\.([a-z][a-z0-9_]{0,62})$/
export const TAG_OPERATORS: Operator[] = ['has', 'is_null']

/** What may be filtered by, for hints. */
export const filterNames = (kind: Kind): string[] => [
  ...Object.keys(kind.fields),
  ...Object.keys(COMMON),
  'tags',
  'custom_fields.<name>',
]

function typeOf(kind: Kind, field: string): { type: FieldType | 'tags'; operators: Operator[] } | undefined {
  if (field === 'tags') return { type: 'tags', operators: TAG_OPERATORS }
  if (CUSTOM.test(field)) return { type: 'text', operators: [...fieldTypes.text.operators, 'has'] }
  const type = Object.hasOwn(kind.fields, field)
    ? kind.fields[field]!.type
    : Object.hasOwn(COMMON, field)
      ? COMMON[field]!
      : undefined
  return type && { type, operators: fieldTypes[type].operators }
}

/** The operators of a field's filters; none where it cannot be filtered by. */
export const operatorsOf = (kind: Kind, field: string): Operator[] => typeOf(kind, field)?.operators ?? []

/** Parses one parameter. @returns the filter, or what is wrong with it. */
export function parseFilter(kind: Kind, parameter: string, value: string): Filter | Issue {
  const loc = ['query', parameter]
  const [, field, named = 'eq'] = /^([^[\]]+)(?:\[([a-z_]+)\])?$/.exec(parameter) ?? []
  const known = field === undefined ? undefined : typeOf(kind, field)
  if (!field || !known)
    return {
      loc,
      msg: 'unknown parameter',
      type: 'unrecognized_key',
      hint: unknownHint(field ?? parameter, filterNames(kind), 'filters'),
    }
  const { type, operators } = known
  const operator = operators.find((one) => one === named)
  if (!operator)
    return {
      loc,
      msg: `${named} is no operator of ${field}`,
      type: 'unknown_operator',
      input: named,
      hint: `${field} has the operators ${operators.join(', ')}`,
    }
  const takes = operandsOf(operator)
  if (takes === 'boolean')
    return value === 'true' || value === 'false'
      ? { field, operator, values: [value] }
      : { loc, msg: 'must be true or false', type: 'invalid_value', input: value }
  const parts = takes === 'list' || takes === 'two' ? splitCsv(value) : [value]
  if (!parts)
    return {
      ...{ loc, type: 'invalid_value', input: value },
      msg: 'has a double quote that is not closed, or no comma after one that is',
      hint: 'a value with a comma is put in double quotes, which are doubled inside: "Smith, Ltd",Acme',
    }
  if (takes === 'two' && parts.length !== 2)
    return { loc, msg: 'must be two values, separated by a comma', type: 'invalid_value', input: value }
  const { filterValue, expects } = fieldTypes[type === 'tags' || operator === 'has' ? 'text' : type]
  const values = parts.map(filterValue)
  const wrong = values.indexOf(undefined)
  if (wrong >= 0) return { loc, msg: `must be ${expects}`, type: 'invalid_value', input: parts[wrong] }
  const accepted = Object.hasOwn(kind.fields, field) ? kind.fields[field]!.values : undefined
  const stranger = accepted && parts.find((part) => !accepted.includes(part.toLowerCase()))
  if (stranger !== undefined)
    return {
      loc,
      msg: `is no value of ${field}`,
      type: 'invalid_value',
      input: stranger,
      hint: `values are ${accepted!.join(', ')}`,
    }
  // A custom field is read by its definition, later.
  const read = CUSTOM.test(field) ? undefined : READERS.get(type)
  const kept = read ? asKept(operator, values as string[], read) : values
  return { field, operator, values: kept as string[] }
}

/** What asks for whole values. */
const WHOLE: Operator[] = ['eq', 'ne', 'in', 'nin']

/**
 * Values in the form in which a write keeps them, so that what was written is found by what was written. `read` is a
 * write's; a value that it refuses stays as it is, for no record has it.
 */
export function asKept(operator: Operator, values: string[], read: (value: string) => unknown): string[] {
  if (!WHOLE.includes(operator)) return values
  return values.map((value) => {
    const kept = read(value)
    return typeof kept === 'string' ? kept : value
  })
}

/** How a write reads a text of each type. Made once, for a schema takes longer to make than a filter to read. */
const READERS = new Map<string, (value: string) => unknown>(
  (Object.keys(fieldTypes) as FieldType[])
    // Choices are compared with those that there are.
    .filter((type) => fieldTypes[type].sql === 'text' && type !== 'enum')
    .map((type) => {
      const schema = fieldTypes[type].input({ type, description: '', max: Number.MAX_SAFE_INTEGER })
      return [type, (value) => schema.safeParse(value).data]
    }),
)

/** What a name that is not known, or each of several, may have meant, and what there is. */
export function unknownHint(unknown: string | string[], names: string[], what: string): string {
  const meant = [unknown].flat().flatMap((name) => nearest(name, names) ?? [])
  return `${meant.length > 0 ? `did you mean ${meant.join(', ')}? ` : ''}${what} are ${names.join(', ')}`
}

/**
 * Values separated by commas; one with a comma in it is put in double quotes, which are doubled inside. Undefined where
 * they are not closed, or something follows that is no comma.
 */
function splitCsv(text: string): string[] | undefined {
  const values: string[] = []
  const value = /(?:"([^"]*(?:""[^"]*)*)"|([^",][^,]*|))(,|$)/y
  for (;;) {
    const match = value.exec(text)
    if (!match) return undefined
    values.push(match[1]?.replaceAll('""', '"') ?? match[2]!)
    if (match[3] === '') return values
  }
}

export interface SortKey {
  sql: string
  type: string
  nullable: boolean
  /** Whether a text can be one of its values. */
  isValue: (text: string) => boolean
}

/** Of longer texts the beginning decides, for a value is part of each cursor. */
const MAX_SORTED = 200

/**
 * What to sort by, the same in `order by` and in cursors; undefined for a field that cannot be sorted by. `type`: of a
 * custom field that has a definition.
 */
export function sortable(kind: Kind, field: string, type?: CustomFieldType): SortKey | undefined {
  const custom = type && customTypes[type]
  if (custom && custom.sql !== 'text')
    return {
      sql: custom.column(nameOf(field)),
      type: custom.sql,
      nullable: true,
      isValue: custom.cursorValue ?? ((text) => custom.filterValue(text) !== undefined),
    }
  const known = typeOf(kind, field)
  if (!known || known.type === 'tags' || !fieldTypes[known.type].sortable) return undefined
  const { sql, filterValue } = fieldTypes[known.type]
  const { required, default: fallback, filled, max = 0 } = kind.fields[field] ?? {}
  const expression = expressionOf(kind, field)
  return {
    sql:
      (sql === 'text' && max > MAX_SORTED) || CUSTOM.test(field)
        ? `left(${expression}, ${MAX_SORTED})`
        : expression,
    type: sql,
    nullable: !(
      required ||
      filled ||
      fallback !== undefined ||
      ['id', 'version', 'created_at', 'updated_at'].includes(field)
    ),
    isValue: (text) => filterValue(text) !== undefined,
  }
}

/** What can be sorted by, for hints. */
export const sortNames = (kind: Kind): string[] =>
  filterNames(kind).filter((name) => name.startsWith('custom_fields') || sortable(kind, name))

/** Of a custom field. */
const nameOf = (field: string): string => CUSTOM.exec(field)![1]!

/** What to compare: text in lower case, from a column that holds it where there is one, so that an index serves. */
function expressionOf(kind: Kind, field: string): string {
  const custom = CUSTOM.exec(field)
  if (custom) return `lower(custom_fields ->> '${custom[1]}')`
  if (field === 'external_id' || field === 'email' || (kind.entity === 'companies' && field === 'name'))
    return `${field}_lower`
  const known = typeOf(kind, field)!.type as FieldType
  return fieldTypes[known].sql === 'text' && known !== 'domain' ? `lower(${field})` : field
}

/** A filter as SQL. Field names in it come from the kind or have passed `CUSTOM`; values are bound. */
export function toCondition(kind: Kind, filter: Filter): Fragment {
  const { field, operator, values } = filter
  if (field === 'tags')
    return operator === 'has'
      ? { sql: 'exists (select from unnest(tags) tag where lower(tag) = lower(?))', bindings: values }
      : { sql: `(tags = '{}') = ?::boolean`, bindings: values }
  const custom = CUSTOM.exec(field)
  if (operator === 'has') return { sql: hasItem(`custom_fields -> '${custom![1]}'`), bindings: values }
  if (operator === 'is_null')
    return {
      sql: `(${custom ? `custom_fields ->> '${custom[1]}'` : field} is null) = ?::boolean`,
      bindings: values,
    }
  const type = filter.type && customTypes[filter.type]
  const column = type ? type.column(nameOf(field)) : expressionOf(kind, field)
  const { sql } = type ?? fieldTypes[typeOf(kind, field)!.type as FieldType]
  // Lower-cased by PostgreSQL on both sides, for JavaScript does it differently.
  const value = sql === 'text' ? 'lower(?)' : `(?::${sql})`
  const isTime = (filter.type ?? typeOf(kind, field)!.type) === 'datetime'
  if (isTime && values.some(isBareDate)) return byWholeDays(column, value, operator, values)
  switch (operator) {
    case 'eq':
      return { sql: `${column} = ${value}`, bindings: values }
    case 'ne':
      return { sql: `${column} is distinct from ${value}`, bindings: values }
    case 'gt':
      return { sql: `${column} > ${value}`, bindings: values }
    case 'gte':
      return { sql: `${column} >= ${value}`, bindings: values }
    case 'lt':
      return { sql: `${column} < ${value}`, bindings: values }
    case 'lte':
      return { sql: `${column} <= ${value}`, bindings: values }
    case 'between':
      return { sql: `${column} between ${value} and ${value}`, bindings: values }
    case 'in':
      return { sql: `${column} in (${values.map(() => value).join(', ')})`, bindings: values }
    case 'nin':
      return { sql: `(${column} in (${values.map(() => value).join(', ')})) is not true`, bindings: values }
    case 'contains':
      return { sql: `${column} like ${value}`, bindings: [`%${escapeLike(values[0]!)}%`] }
    case 'starts_with':
      return { sql: `${column} like ${value}`, bindings: [`${escapeLike(values[0]!)}%`] }
  }
}

/** Items are compared as text: `has=5` finds 5 and "5". What is no list is a list of one. */
const hasItem = (json: string) =>
  `exists (
     select from jsonb_array_elements_text(
       case jsonb_typeof(${json}) when 'array' then ${json} else jsonb_build_array(${json}) end
     ) item where lower(item) = lower(?)
   )`

const escapeLike = (text: string) => text.replace(/[\\%_]/g, '\\$&')
