import type { Issue } from '../errors.ts'
import { fieldTypes, type Operator } from './field-types.ts'
import type { FieldType, Kind } from './kind.ts'

/**
 * Field filters of lists: `stage=won`, `amount[gte]=1000`, `custom_fields.tier[in]=gold,silver`. Text compares without
 * regard to case; `ne` and `nin` include null; a custom field without a definition filters as text.
 */
export interface Filter {
  field: string
  operator: Operator
  /** One value; two for `between`, any number for `in` and `nin`. In the form that SQL takes. */
  values: string[]
}

type SortableField = { sql: string; type: string }

const COMMON: Record<string, FieldType> = {
  id: 'reference',
  external_id: 'text',
  owner_id: 'reference',
  version: 'integer',
  created_at: 'datetime',
  updated_at: 'datetime',
}

const CUSTOM = /^custom_fields\.([a-z][a-z0-9_]{0,62})$/
const TAG_OPERATORS: Operator[] = ['has', 'is_null']

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

/** Parses one parameter. @returns the filter, or what is wrong with it. */
export function parseFilter(kind: Kind, parameter: string, value: string): Filter | Issue {
  const loc = ['query', parameter]
  const [, field, operator = 'eq'] = /^([^[\]]+)(?:\[([a-z_]+)\])?$/.exec(parameter) ?? []
  const known = field === undefined ? undefined : typeOf(kind, field)
  if (!field || !known)
    return {
      loc,
      msg: `unknown parameter; filters are ${filterNames(kind).join(', ')}`,
      type: 'unrecognized_key',
    }
  const { type, operators } = known
  if (!operators.includes(operator as Operator))
    return {
      loc,
      msg: `${field} has the operators ${operators.join(', ')}`,
      type: 'unknown_operator',
      input: operator,
    }
  if (operator === 'is_null')
    return value === 'true' || value === 'false'
      ? { field, operator, values: [value] }
      : { loc, msg: 'must be true or false', type: 'invalid_value', input: value }
  const parts = operator === 'in' || operator === 'nin' || operator === 'between' ? splitCsv(value) : [value]
  if (operator === 'between' && parts.length !== 2)
    return { loc, msg: 'must be two values, separated by a comma', type: 'invalid_value', input: value }
  if (type === 'tags' || operator === 'has') return { field, operator: operator as Operator, values: parts }
  const values = parts.map(fieldTypes[type].filterValue)
  const wrong = values.indexOf(undefined)
  return wrong >= 0
    ? { loc, msg: `must be ${fieldTypes[type].expects}`, type: 'invalid_value', input: parts[wrong] }
    : { field, operator: operator as Operator, values: values as string[] }
}

/** Values separated by commas; one with a comma in it is put in double quotes, which are doubled inside. */
function splitCsv(text: string): string[] {
  const values: string[] = []
  for (const match of text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g))
    values.push(match[1] === undefined ? match[2]! : match[1].replaceAll('""', '"'))
  return values
}

/** The expression to sort and compare by, and its type; undefined where a field cannot be sorted by. */
export function sortable(kind: Kind, field: string): SortableField | undefined {
  const custom = CUSTOM.exec(field)
  if (custom) return { sql: `lower(custom_fields ->> '${custom[1]}')`, type: 'text' }
  const known = typeOf(kind, field)
  if (!known || known.type === 'tags' || !fieldTypes[known.type].sortable) return undefined
  const { sql } = fieldTypes[known.type]
  return { sql: sql === 'text' ? `lower(${field})` : field, type: sql }
}

interface Condition {
  sql: string
  bindings: string[]
}

/** A filter as SQL. Field names in it come from the kind or have passed `CUSTOM`; values are bound. */
export function toCondition(kind: Kind, filter: Filter): Condition {
  const { field, operator, values } = filter
  if (field === 'tags')
    return operator === 'has'
      ? { sql: 'tags @> array[?]::text[]', bindings: values }
      : { sql: `(tags = '{}') = ?::boolean`, bindings: values }
  const custom = CUSTOM.exec(field)
  if (operator === 'has')
    return { sql: `custom_fields -> '${custom![1]}' @> to_jsonb(?::text)`, bindings: values }
  if (operator === 'is_null')
    return {
      sql: `(${custom ? `custom_fields ->> '${custom[1]}'` : field} is null) = ?::boolean`,
      bindings: values,
    }
  const { sql: column, type } = indexed(kind, field) ?? sortable(kind, field)!
  const value = `?::${type}`
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
      return { sql: `${column} like ?`, bindings: [`%${escapeLike(values[0]!)}%`] }
    case 'starts_with':
      return { sql: `${column} like ?`, bindings: [`${escapeLike(values[0]!)}%`] }
  }
}

/** Columns that hold the lower-cased value, so that an index serves the comparison. */
function indexed(kind: Kind, field: string): SortableField | undefined {
  if (field === 'email') return { sql: 'email_lower', type: 'text' }
  if (field === 'domain') return { sql: 'domain', type: 'text' }
  return kind.entity === 'companies' && field === 'name' ? { sql: 'name_lower', type: 'text' } : undefined
}

const escapeLike = (text: string) => text.replace(/[\\%_]/g, '\\$&')
