import { nearest } from '../../../workflows/definition/errors.ts'
import { operandsOf } from '../../../workflows/operators.ts'
import type { Issue } from '../../errors.ts'
import { commonFields } from './common-fields.ts'
import type { CustomFieldType } from './custom-fields/types.ts'
import { fieldTypes, type Operator } from './field-types.ts'
import type { FieldType, Kind } from './kind.ts'

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

const CUSTOM = /^custom_fields\.([a-z][a-z0-9_]{0,62})$/

/** The name of the custom field that `field` stands for; undefined for any other field. */
export const customName = (field: string): string | undefined => CUSTOM.exec(field)?.[1]

export const TAG_OPERATORS: Operator[] = ['has', 'is_null']

/** What may be filtered by, for hints. */
export const filterNames = (kind: Kind): string[] => [
  ...Object.keys(kind.fields),
  ...Object.keys(COMMON),
  'tags',
  'custom_fields.<name>',
]

/** The type of a field by which records can be filtered, and its operators; undefined for any other. */
export function typeOf(
  kind: Kind,
  field: string,
): { type: FieldType | 'tags'; operators: Operator[] } | undefined {
  if (field === 'tags') return { type: 'tags', operators: TAG_OPERATORS }
  if (customName(field)) return { type: 'text', operators: [...fieldTypes.text.operators, 'has'] }
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
  const read = customName(field) ? undefined : READERS.get(type)
  const kept = read ? asKept(operator, values as string[], read) : values
  return { field, operator, values: kept as string[] }
}

/** The operators that compare with whole values. */
export const WHOLE: Operator[] = ['eq', 'ne', 'in', 'nin']

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
    .filter((type) => fieldTypes[type].isText && type !== 'enum')
    .map((type) => {
      const schema = fieldTypes[type].input({ type, description: '', max: Number.MAX_SAFE_INTEGER })
      return [type, (value) => schema.safeParse(value).data]
    }),
)

/** Of so many names the nearest is looked for. */
const MAX_HINTS = 10

/** What a name that is not known, or each of several, may have meant, and what there is. */
export function unknownHint(unknown: string | string[], names: string[], what: string): string {
  const meant = [unknown]
    .flat()
    .slice(0, MAX_HINTS)
    .flatMap((name) => nearest(name, names) ?? [])
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

/** Whether records can be sorted by a field. */
export function isSortable(kind: Kind, field: string): boolean {
  const known = typeOf(kind, field)
  return known !== undefined && known.type !== 'tags' && fieldTypes[known.type].sortable
}

/** What can be sorted by, for hints. */
export const sortNames = (kind: Kind): string[] =>
  filterNames(kind).filter((name) => name.startsWith('custom_fields') || isSortable(kind, name))
