import type { Shape } from '../language/shapes.ts'
import { parseTime } from '../language/time.ts'
import {
  allowedValues,
  isUnknown,
  kindsOf,
  mayBeNull,
  optionsOf,
  type ValueType,
} from '../language/value-types.ts'
import { isNumeric } from '../shared/decimal.ts'
import { UUID } from '../shared/uuid.ts'

/**
 * What types tell about a comparison: a value that can never be equal to another, and an order that there is not. Such a
 * comparison is always false, so a workflow would take the other path without a word.
 */

/** A value of a comparison: its type, and the value itself if it is written plainly. */
export interface Operand {
  type: ValueType
  literal?: string | number | boolean
}

/** Whether two values can be equal. Unknown types can. */
export function canBeEqual(left: Operand, right: Operand, { ignoreCase = false } = {}): boolean {
  if (left.literal !== undefined) return hasOption(right, left.literal, ignoreCase)
  if (right.literal !== undefined) return hasOption(left, right.literal, ignoreCase)
  const [a, b] = [kindsOf(left.type), kindsOf(right.type)]
  if (!a || !b || a.length === 0 || b.length === 0) return true
  if (mayBeNull(left.type) && mayBeNull(right.type)) return true
  return a.some((one) => b.some((other) => one === other || (isScalar(one) && isScalar(other))))
}

/** A number can be equal to a text of digits. */
const isScalar = (kind: string) => kind === 'number' || kind === 'string'

function hasOption({ type }: Operand, value: string | number | boolean, ignoreCase: boolean): boolean {
  // An empty text equals null.
  if (value === '' && mayBeNull(type)) return true
  const options = optionsOf(type)
  return options.length === 0 || options.some((option) => canBe(option, value, ignoreCase))
}

function canBe(option: Shape, value: string | number | boolean, ignoreCase: boolean): boolean {
  if (isUnknown(option)) return true
  const allowed = allowedValues(option)
  if (allowed) return allowed.some((one) => same(one, String(value), ignoreCase))
  if (typeof value === 'boolean') return option.type === 'boolean' || (ignoreCase && option.type === 'string')
  switch (option.type) {
    case 'string':
      return isWritten(option, String(value), ignoreCase)
    case 'number':
    case 'integer':
      return isNumeric(value)
    case 'boolean':
      return ignoreCase && /^(true|false)$/i.test(String(value))
    default:
      return false
  }
}

const same = (one: string, other: string, ignoreCase: boolean) =>
  ignoreCase ? one.toLowerCase() === other.toLowerCase() : one === other

/** Whether a text of a format can be written so. */
function isWritten({ format }: Shape, value: string, ignoreCase: boolean): boolean {
  if (format === 'date' || format === 'date-time') return parseTime(value) !== undefined
  if (format === 'decimal') return isNumeric(value)
  if (format === 'currency') return (ignoreCase ? /^[a-z]{3}$/i : /^[A-Z]{3}$/).test(value)
  return format !== 'uuid' || UUID.test(value)
}

/** What a value is that has no order: undefined if its options may have one. */
export type Unordered =
  | 'a list'
  | 'a mapping'
  | 'a boolean'
  | 'one of a list of names'
  | 'a time'
  | 'a number'

/** Why one of two values is never greater or less than the other. */
export function orderProblem(
  left: Operand,
  right: Operand,
): { what: Unordered; with?: string | number | boolean } | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ] as const) {
    if (one.literal !== undefined) continue
    const options = optionsOf(one.type)
    if (options.length === 0 || options.some(isUnknown)) continue
    for (const [what, is] of UNORDERED) if (options.every(is)) return { what }
    const { literal } = other
    if (literal === undefined || literal === '') continue
    if (options.every(isTime) && (typeof literal !== 'string' || parseTime(literal) === undefined))
      return { what: 'a time', with: literal }
    if (options.every(isNumber) && !isNumeric(literal)) return { what: 'a number', with: literal }
  }
  return undefined
}

const isTime = ({ type, format }: Shape) => type === 'string' && (format === 'date' || format === 'date-time')
export const isNumber = ({ type, format }: Shape) =>
  type === 'number' || type === 'integer' || (type === 'string' && format === 'decimal')

const UNORDERED: readonly [Unordered, (option: Shape) => boolean][] = [
  ['a list', ({ type }) => type === 'array'],
  ['a mapping', ({ type }) => type === 'object'],
  ['a boolean', ({ type }) => type === 'boolean'],
  ['one of a list of names', (option) => option.type === 'string' && allowedValues(option) !== undefined],
]

/** What a value is that always holds; undefined if it may not. */
export function alwaysTrue(type: ValueType): 'a mapping' | 'a number' | undefined {
  const options = optionsOf(type)
  if (options.length === 0 || options.some(isUnknown) || mayBeNull(type)) return undefined
  if (options.every((one) => one.type === 'object' && (one.required?.length ?? 0) > 0)) return 'a mapping'
  return options.every((one) => one.type === 'number' || one.type === 'integer') ? 'a number' : undefined
}
