import { nearest } from '../../../workflows/shared/nearest.ts'
import { operandsOf } from '../../../workflows/shared/operators.ts'
import {
  ASSOCIATION_FIELDS,
  associatedKind,
  type Hop,
  hopOf,
  IMPORT_ID,
  kindReadBy,
  LAST_ACTIVITY,
  LIST_ID,
  WITH_ACTIVITIES,
} from '../../../workflows/shared/related-filters.ts'
import type { Issue } from '../errors.ts'
import { controlMeant } from '../lists/control-names.ts'
import { commonFields } from './common-fields.ts'
import type { CustomFieldType } from './custom-fields/types.ts'
import type { Rates } from './exchange-rates.ts'
import { fieldTypes, type Operator } from './field-types.ts'
import type { FieldType, Kind } from './kind.ts'
import { kinds } from './kinds/index.ts'
import { meantField } from './meant-field.ts'
import { isMisused, RELATIVE_OPERATORS } from './relative-days.ts'

/**
 * Field filters of lists: `stage=won`, `amount[gte]=1000`, `custom_fields.tier[in]=gold,silver`. Text compares
 * case-insensitively, whole values in their stored form; a date without a time means the whole day; `ne` and `nin`
 * include null; a custom field without a definition filters as text, but in the order of numbers where the values are
 * numbers.
 */
export interface Filter {
  field: string
  operator: Operator
  /** SQL values: two for `between`, any number for `in` and `nin`, else one. None: the filter finds nothing. */
  values: string[]
  /** The type of a custom field with a definition. */
  type?: CustomFieldType
  /** The rates of amounts in several currencies: see worth.ts. */
  rates?: Rates
}

/** The common fields whose type is one of a kind's own fields. */
const COMMON: Record<string, FieldType> = Object.fromEntries(
  Object.entries(commonFields).flatMap(([name, { type }]) =>
    Object.hasOwn(fieldTypes, type) ? [[name, type as FieldType]] : [],
  ),
)

/** The maximum number of filters in a query. */
export const MAX_FILTERS = 50
/** The maximum number of values in all filters: PostgreSQL binds at most 65,535 in a statement. */
export const MAX_VALUES = 10_000

const CUSTOM = /^custom_fields\.([a-z][a-z0-9_]{0,62})$/

/** The name of the custom field in `custom_fields.<name>`; undefined for other fields. */
export const customName = (field: string): string | undefined => CUSTOM.exec(field)?.[1]

export const TAG_OPERATORS: Operator[] = ['has', 'has_not', 'is_null']

/** The operators of `associations.<kind>`: `is_null` is true for records that are associated with none. */
const ASSOCIATION_OPERATORS: Operator[] = ['eq', 'ne', 'in', 'nin', 'is_null']
const ACTIVITY_OPERATORS: Operator[] = ['gt', 'gte', 'lt', 'lte', 'between', 'is_null', 'not_since']

/** Whether the field is read from other tables, so that it can only be filtered by. */
const isRelated = (field: string): boolean =>
  kindReadBy(field) !== undefined || field === IMPORT_ID || field === LIST_ID

/** The other records that `company.industry` or `associations.deals.stage` reads; undefined for other fields. */
export function knownHop(kind: Kind, field: string): Hop | undefined {
  const hop = hopOf(field)
  if (!hop) return undefined
  const { reference } = hop
  const isReference = reference !== undefined && Object.hasOwn(kind.fields, reference)
  return reference === undefined || (isReference && kind.fields[reference]!.to === hop.kind) ? hop : undefined
}

/** A filter without its hop, for the kind that has its field. */
export function atItsKind(kind: Kind, filter: Filter): { kind: Kind; filter: Filter } {
  const hop = knownHop(kind, filter.field)
  return hop ? { kind: kinds[hop.kind], filter: { ...filter, field: hop.field } } : { kind, filter }
}

/** The filterable fields, for hints. */
export const filterNames = (kind: Kind): string[] => [
  ...Object.keys(kind.fields),
  ...Object.keys(COMMON),
  'tags',
  'custom_fields.<name>',
  ...ASSOCIATION_FIELDS,
  ...(WITH_ACTIVITIES.includes(kind.entity) ? [LAST_ACTIVITY] : []),
  IMPORT_ID,
  LIST_ID,
]

/** The type and operators of a filterable field; undefined for other fields. */
export function typeOf(
  kind: Kind,
  field: string,
): { type: FieldType | 'tags'; operators: Operator[] } | undefined {
  if (field === 'tags') return { type: 'tags', operators: TAG_OPERATORS }
  if (associatedKind(field)) return { type: 'reference', operators: ASSOCIATION_OPERATORS }
  const hop = knownHop(kind, field)
  // One hop: the fields of the other record itself.
  if (hop) return isRelated(hop.field) ? undefined : typeOf(kinds[hop.kind], hop.field)
  if (field === IMPORT_ID || field === LIST_ID)
    return { type: 'reference', operators: fieldTypes.reference.operators }
  if (field === LAST_ACTIVITY && WITH_ACTIVITIES.includes(kind.entity))
    return { type: 'datetime', operators: ACTIVITY_OPERATORS }
  if (customName(field))
    return { type: 'text', operators: [...fieldTypes.text.operators, 'has', 'has_not', 'not_since'] }
  const type = Object.hasOwn(kind.fields, field)
    ? kind.fields[field]!.type
    : Object.hasOwn(COMMON, field)
      ? COMMON[field]!
      : undefined
  return type && { type, operators: fieldTypes[type].operators }
}

/** The filter operators of a field; none if it is not filterable. */
export const operatorsOf = (kind: Kind, field: string): Operator[] => typeOf(kind, field)?.operators ?? []

/** Parses one parameter. @returns the filter, or the issue. */
export function parseFilter(kind: Kind, parameter: string, value: string): Filter | Issue {
  const loc = ['query', parameter]
  const [, field, named = 'eq'] = /^([^[\]]+)(?:\[([a-z_]+)\])?$/.exec(parameter) ?? []
  const known = field === undefined ? undefined : typeOf(kind, field)
  const hop = field === undefined ? undefined : knownHop(kind, field)
  if (hop && (known || !isRelated(hop.field))) {
    const parsed = parseFilter(kinds[hop.kind], `${hop.field}${parameter.slice(field!.length)}`, value)
    return 'loc' in parsed ? { ...parsed, loc } : { ...parsed, field: field! }
  }
  if (!field || !known)
    return {
      loc,
      msg: 'unknown parameter',
      type: 'unrecognized_key',
      hint: hop
        ? ONE_HOP
        : (controlHint(field) ?? unknownHint(kind, field ?? parameter, filterNames(kind), 'filters')),
    }
  const { type, operators } = known
  const operator = operators.find((one) => one === named)
  if (!operator)
    return {
      loc,
      msg: `${named} is not an operator of ${field}`,
      type: 'unknown_operator',
      input: named,
      hint: `${field} supports the operators ${operators.join(', ')}`,
    }
  const takes = operandsOf(operator)
  if (takes === 'boolean')
    return value === 'true' || value === 'false'
      ? { field, operator, values: [value] }
      : { loc, msg: 'must be true or false', type: 'invalid_value', input: value }
  const parts = takes === 'list' || takes === 'two' ? splitCsv(value) : [value]
  if (!parts)
    return {
      loc,
      type: 'invalid_value',
      input: value,
      msg: 'has an unclosed double quote, or no comma after a closing quote',
      hint: 'enclose a value with a comma in double quotes, and double the quotes inside: "Smith, Ltd",Acme',
    }
  if (takes === 'two' && parts.length !== 2)
    return { loc, msg: 'must be two values, separated by a comma', type: 'invalid_value', input: value }
  const isItem = HAS.includes(operator) && !isList(type)
  const { filterValue, expects } = fieldTypes[type === 'tags' || isItem ? 'text' : type]
  const values = parts.map(filterValue)
  const wrong = values.indexOf(undefined)
  if (wrong >= 0) return { loc, msg: `must be ${expects}`, type: 'invalid_value', input: parts[wrong] }
  if ((type === 'date' || type === 'datetime') && isMisused(operator, parts))
    return { loc, msg: `must be ${expects}`, type: 'invalid_value', input: value, hint: RELATIVE_OPERATORS }
  const own = Object.hasOwn(kind.fields, field) ? kind.fields[field] : undefined
  // Those of the organization are checked with the database.
  const accepted = own?.ofOrganization ? undefined : own?.values
  const unknown = accepted && parts.find((part) => !accepted.includes(part.toLowerCase()))
  if (unknown !== undefined)
    return {
      loc,
      msg: `is not a value of ${field}`,
      type: 'invalid_value',
      input: unknown,
      hint: `values are ${accepted!.join(', ')}`,
    }
  // The definition of a custom field is applied later.
  const read = customName(field) ? undefined : READERS.get(type)
  const stored = read ? asStored(operator, values as string[], read) : values
  return { field, operator, values: stored as string[] }
}

/**
 * Parses one filter of a node: a list becomes the comma-separated values of the query string, quoted.
 * @returns the filter, or the issue.
 */
export function parseFilterValue(kind: Kind, parameter: string, value: unknown): Filter | Issue {
  const quoted = (item: unknown) => `"${String(item).replaceAll('"', '""')}"`
  return parseFilter(kind, parameter, Array.isArray(value) ? value.map(quoted).join(',') : String(value))
}

const ONE_HOP = 'a filter reads the fields of a related record itself, not those of its related records'

/** The signed-in user, as a value of filters by users. */
export const ME = 'me'

/** Whether a field lists addresses or numbers. */
export const isList = (type: string): boolean => type === 'emails' || type === 'phones'

/** The operators that compare one item of a list. */
export const HAS: Operator[] = ['has', 'has_not']

/** The operators that compare whole values. */
export const WHOLE_VALUE_OPERATORS: Operator[] = ['eq', 'ne', 'in', 'nin']

/**
 * Converts filter values to their stored form, so that a filter matches a value as it was written. `read` is the parser
 * of writes. A value that it refuses stays unchanged, because no record has it.
 */
export function asStored(operator: Operator, values: string[], read: (value: string) => unknown): string[] {
  if (!WHOLE_VALUE_OPERATORS.includes(operator)) return values
  return values.map((value) => {
    const stored = read(value)
    return typeof stored === 'string' ? stored : value
  })
}

/** The parser of writes for each text type. Built once: building a schema takes longer than parsing a filter. */
const READERS = new Map<string, (value: string) => unknown>(
  (Object.keys(fieldTypes) as FieldType[])
    // Enum values were checked against the allowed values.
    .filter((type) => fieldTypes[type].isText && type !== 'enum')
    .map((type) => {
      const schema = fieldTypes[type].input({ type, description: '', max: Number.MAX_SAFE_INTEGER })
      return [type, (value) => schema.safeParse(value).data]
    }),
)

/** Maximum number of unknown names for which the nearest name is searched. */
const MAX_HINTS = 10

/** The lists of records have all of the controls. */
function controlHint(name = ''): string | undefined {
  const meant = controlMeant(name, () => true)
  return meant && `did you mean ${meant}?`
}

/** A hint for unknown names: the nearest known name of each, or the list of known names. */
export function unknownHint(
  kind: Kind | undefined,
  unknown: string | string[],
  names: string[],
  what: string,
): string {
  const meant = [unknown]
    .flat()
    .slice(0, MAX_HINTS)
    .flatMap((name) => (kind ? meantField(kind, name, names) : nearest(name, names)) ?? [])
  return `${meant.length > 0 ? `did you mean ${meant.join(', ')}? ` : ''}${what} are ${names.join(', ')}`
}

/**
 * Splits comma-separated values. A value with a comma is enclosed in double quotes, which are doubled inside. Undefined
 * if a quote is not closed, or no comma follows a closing quote.
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
  return known !== undefined && known.type !== 'tags' && !isRelated(field) && fieldTypes[known.type].sortable
}

/** The sortable fields, for hints. */
export const sortNames = (kind: Kind): string[] =>
  filterNames(kind).filter((name) => name.startsWith('custom_fields') || isSortable(kind, name))
