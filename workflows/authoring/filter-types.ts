import { BY_FIELD, resultOf } from '../language/expressions/filters.ts'
import { OMIT } from '../language/expressions/omitted.ts'
import { originOf } from '../language/sample-types.ts'
import {
  allowedValues,
  BOOLEAN,
  INTEGER,
  isUnknown,
  itemsOf,
  kindsOf,
  listOf,
  mayBeNull,
  members,
  NULL,
  NUMBER,
  notNull,
  optionsOf,
  TEXT,
  UNKNOWN,
  unionOf,
  type ValueType,
} from '../language/value-types.ts'
import { isNumeric } from '../shared/decimal.ts'
import { shown } from './comparison-types.ts'
import type { Mistake, Wanted } from './mistake.ts'

/** The mistake that a filter gets what it cannot be meant for; undefined if it may be. */
export function operandMistake(input: ValueType, filter: string): Mistake | undefined {
  const wants = wantedBy(filter)
  const options = optionsOf(input)
  if (wants === undefined || options.length === 0) return undefined
  if (options.some((one) => isUnknown(one) || suits(wants, one))) return undefined
  return { kind: 'operand', filter, what: shown({ type: input }), wants, origin: originOf(input) }
}

const OF_LISTS = [
  ...BY_FIELD,
  'array_to_sentence_string',
  'compact',
  'concat',
  'join',
  'pop',
  'push',
  'shift',
  'unshift',
]
const OF_TIMES = [
  'add_time',
  'time_until',
  'date',
  'date_to_xmlschema',
  'date_to_rfc822',
  'date_to_string',
  'date_to_long_string',
]
const OF_ANY = ['json', 'sha256', 'slice']

function wantedBy(filter: string): Wanted | undefined {
  if (OF_LISTS.includes(filter)) return 'a list'
  if (OF_TIMES.includes(filter)) return 'a time'
  const result = resultOf(filter)
  if (result === 'computed' || ['to_fixed', 'to_integer', 'format_number'].includes(filter)) return 'a number'
  return result === 'text' && !OF_ANY.includes(filter) ? 'a text' : undefined
}

function suits(wants: Wanted, option: ValueType): boolean {
  const { type, format } = option
  switch (wants) {
    case 'a list':
      // A mapping counts as a list with this one item.
      return type === 'array' || type === 'object'
    case 'a text':
      return type !== 'array' && type !== 'object'
    case 'a time':
      return type === 'string' ? canBeTime(option) : type === 'number' || type === 'integer'
    case 'a number':
      if (type === 'string')
        return (
          format === 'decimal' || (format === undefined && (allowedValues(option)?.some(isNumeric) ?? true))
        )
      return type === 'number' || type === 'integer' || type === 'boolean'
  }
}

const canBeTime = (option: ValueType) =>
  (option.format === undefined || option.format === 'date' || option.format === 'date-time') &&
  allowedValues(option) === undefined

/** Null that a filter has made of null. */
const COMPUTED_NULL: ValueType = { type: 'null', title: 'computed from null' }
/** The filters that make null of null. */
const KEEP_NULL = ['to_fixed', 'to_integer', 'format_number', 'add_time', 'time_until']

/** Whether a filter makes null of an operand that may be null, unless another filter has made it null. */
export const makesNull = (filter: string, operand: ValueType): boolean =>
  keepsNull(filter) && mayBeNull(operand) && !isComputedNull(operand)

const keepsNull = (filter: string) => resultOf(filter) === 'computed' || KEEP_NULL.includes(filter)

export const isComputedNull = (type: ValueType): boolean =>
  type === COMPUTED_NULL || (type.anyOf?.some(isComputedNull) ?? false)

/** The type of the result of a filter. `member`: that of the field that its first argument names. */
export function typeAfter(name: string, input: ValueType, args: ValueType[], member: ValueType): ValueType {
  const type = resultType(name, input, args, member)
  return keepsNull(name) && [input, ...args].some((one) => mayBeNull(one))
    ? unionOf([type, COMPUTED_NULL])
    : type
}

function resultType(name: string, input: ValueType, args: ValueType[], member: ValueType): ValueType {
  if (name === 'default') return unionOf([notNull(input), args[0] ?? UNKNOWN])
  if (name === OMIT) return notNull(input)
  const result = resultOf(name)
  if (result === 'text') return TEXT
  if (result === 'count') return INTEGER
  if (result === 'computed') return computed([input, ...args])
  if (name === 'has') return BOOLEAN
  if (name === 'split') return listOf(TEXT)
  if (name === 'sum') return computed([member === UNKNOWN ? itemsOf(input) : member])
  if (name === 'map') return listOf(member)
  const isList = optionsOf(input).every(({ type }) => type === 'array')
  if (!isList) return UNKNOWN
  if (result === 'same list') return notNull(input)
  if (name === 'first' || name === 'last' || name === 'find') return unionOf([itemsOf(input), NULL])
  if (name === 'push' || name === 'unshift') return listOf(unionOf([itemsOf(input), args[0] ?? UNKNOWN]))
  if (name === 'concat') return listOf(unionOf([itemsOf(input), itemsOf(args[0] ?? UNKNOWN)]))
  if (name === 'group_by') return listOf(members({ name: member, items: notNull(input) }))
  return UNKNOWN
}

/** A number, or a text where an operand may be one. */
function computed(operands: readonly ValueType[]): ValueType {
  const kinds = operands.map(kindsOf)
  return kinds.every((names) => names?.every((name) => name === 'number'))
    ? NUMBER
    : { anyOf: [NUMBER, TEXT] }
}
