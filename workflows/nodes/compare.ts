import { compareTimes, readTime } from '../language/compare-times.ts'
import { NodeError } from '../language/node-error.ts'
import { localParts } from '../language/time.ts'
import { uncomparable, uncomparableAmong } from '../language/uncomparable.ts'
import { compareNumbers, isDigits, isNumeric, numberKey } from '../shared/decimal.ts'
import { type ConditionOperator, negatedBy, type PositiveCondition } from '../shared/operators.ts'

/**
 * Compares like record filters: text ignores case; numbers, also numeric text such as money, compare by value; times
 * by the moment, and with a day by the day. An empty text equals null. No value is greater or less than an empty one.
 * `timezone`: of days, and of times without an offset.
 */
export function compare(
  left: unknown,
  operator: ConditionOperator,
  right: unknown,
  timezone = 'UTC',
): boolean {
  const negated = negatedBy(operator)
  if (negated) return !compare(left, negated, right, timezone)
  switch (operator as PositiveCondition) {
    case 'eq':
      return equal(left, right, timezone)
    case 'gt':
      return order(left, right, timezone) > 0
    case 'gte':
      return order(left, right, timezone) >= 0
    case 'lt':
      return order(left, right, timezone) < 0
    case 'lte':
      return order(left, right, timezone) <= 0
    case 'contains':
      return contains(left, right, timezone)
    case 'starts_with':
      return text(left).startsWith(text(right))
    case 'ends_with':
      return text(left).endsWith(text(right))
    case 'in':
      return list(right).some((item) => equal(left, item, timezone))
    case 'is_empty':
      return isEmpty(left)
  }
}

/** `compare` for many values on the left: a list on the right is searched in constant time. */
export function comparison(
  operator: ConditionOperator,
  right: unknown,
  timezone = 'UTC',
): (left: unknown) => boolean {
  const negated = negatedBy(operator)
  if (negated) {
    const holds = comparison(negated, right, timezone)
    return (left) => !holds(left)
  }
  const options = operator === 'in' ? list(right) : []
  if (options.length === 0 || options.some((option) => typeof option === 'object'))
    return (left) => compare(left, operator, right, timezone)
  const keys = new Set(options.flatMap((option) => keysOf(option, 'right', timezone)))
  return (left) =>
    isAbsent(left) || typeof left === 'object'
      ? compare(left, operator, right, timezone)
      : keysOf(left, 'left', timezone).some((key) => keys.has(key))
}

/** The equality of `eq`, `in` and the cases of a switch. */
export function equal(left: unknown, right: unknown, timezone = 'UTC'): boolean {
  if (isAbsent(left) || isAbsent(right)) return isAbsent(left) && isAbsent(right)
  if (typeof left === 'object' || typeof right === 'object') return canonical(left) === canonical(right)
  const difference = compareNumbers(left, right)
  if (difference !== undefined) return difference === 0
  const times = compareTimes(left, right, timezone)
  if (times !== undefined) return times === 0
  return text(left) === text(right)
}

/** Negative, zero or positive; NaN if the two have no order. */
function order(left: unknown, right: unknown, timezone: string): number {
  if (isEmpty(left) || isEmpty(right)) return Number.NaN
  const found = compareNumbers(left, right) ?? compareTimes(left, right, timezone)
  if (found !== undefined) return found
  const problem = uncomparable(left, right)
  if (problem !== undefined) throw new NodeError('not_comparable', `${problem}.`)
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  const [a, b] = [text(left), text(right)]
  return a < b ? -1 : a > b ? 1 : 0
}

/** Throws NodeError if two of the values of a field, of which one shall be before the other, have no order. */
export function requireOrder(values: readonly unknown[], field: string): void {
  const problem = uncomparableAmong(values)
  if (problem !== undefined)
    throw new NodeError('not_comparable', `${field.slice(0, 100)}: ${problem}.`, { details: { field } })
}

/** A value for comparison in a sort: first by `rank`, the rank of its type. */
export interface SortKey {
  rank: number
  value: number | string
  /** The decimal text of a number that is more exact than `value`. */
  exact?: string
}

/**
 * The sort key of a value of any type. The order of types is numbers (also numeric text), times, text, booleans, then
 * lists and objects, which are all equal. Within a type it is the order of `gt` and `lt`; a day among times is its first
 * moment. Undefined if the value is empty.
 */
export function sortKey(value: unknown, timezone = 'UTC'): SortKey | undefined {
  if (isEmpty(value)) return undefined
  if (isNumeric(value)) {
    const isLong = typeof value === 'string' && value.length > 15
    return { rank: 0, value: Number(value), ...(isLong && { exact: value }) }
  }
  const time = readTime(value, timezone)
  if (time !== undefined) return { rank: 1, value: time.from }
  if (typeof value === 'string') return { rank: 2, value: text(value) }
  return typeof value === 'boolean' ? { rank: 3, value: Number(value) } : { rank: 4, value: 0 }
}

/** Negative, zero or positive. */
export function compareKeys(left: SortKey, right: SortKey): number {
  if (left.rank !== right.rank) return left.rank - right.rank
  if (left.rank === 0 && (left.exact || right.exact))
    return compareNumbers(left.exact ?? left.value, right.exact ?? right.value) ?? 0
  return left.value < right.value ? -1 : left.value > right.value ? 1 : 0
}

function contains(left: unknown, right: unknown, timezone: string): boolean {
  if (Array.isArray(left)) return left.some((item) => equal(item, right, timezone))
  return !isNothing(left) && text(left).includes(text(right))
}

const list = (value: unknown) => (Array.isArray(value) ? value : [value])

const isNothing = (value: unknown) => value === null || value === undefined
const isAbsent = (value: unknown) => isNothing(value) || value === ''

function isEmpty(value: unknown): boolean {
  if (isNothing(value)) return true
  if (typeof value === 'string') return value.trim() === ''
  return typeof value === 'object' && Object.keys(value as object).length === 0
}

/**
 * Two scalars have a key in common exactly if `eq` compares them as equal. The keys of the left one are others than
 * those of the right one, since 8 equals both `08` and `008`, which are different texts.
 */
function keysOf(value: unknown, side: 'left' | 'right', timezone: string): string[] {
  const written = `"${text(value)}`
  const isLeft = side === 'left'
  if (typeof value === 'number') {
    const key = numberKey(value)
    return [`=${key}`, `${isLeft ? '<' : '>'}${key}`, written]
  }
  if (isNumeric(value)) return [`=${numberKey(value)}`]
  // A text such as `08` equals the number 8, but not the text `8`.
  if (isDigits(value)) return [`${isLeft ? '>' : '<'}${numberKey(value)}`, written]
  const time = readTime(value, timezone)
  if (time === undefined) return [written]
  // A day equals each moment of it, and two moments of one day are not equal.
  const day = localParts(new Date(time.from), timezone).date
  if (time.until === undefined) return [`@${time.from}`, `${isLeft ? '[' : ']'}${day}`]
  return [`#${time.from}`, `${isLeft ? ']' : '['}${day}`]
}

function text(value: unknown): string {
  if (isNothing(value)) return ''
  return (typeof value === 'object' ? canonical(value) : String(value)).toLowerCase()
}

/** JSON with sorted keys: equal objects have equal JSON. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
