import { NodeError } from '../language/node-error.ts'
import { uncomparable } from '../language/uncomparable.ts'
import { compareNumbers, isDigits, isNumeric, numberKey } from '../shared/decimal.ts'
import { type ConditionOperator, negatedBy, type PositiveCondition } from '../shared/operators.ts'

/**
 * Compares like record filters: text ignores case; numbers, also numeric text such as money, compare by value; times
 * by the moment. An empty text equals null. No value is greater or less than an empty one.
 */
export function compare(left: unknown, operator: ConditionOperator, right: unknown): boolean {
  const negated = negatedBy(operator)
  if (negated) return !compare(left, negated, right)
  switch (operator as PositiveCondition) {
    case 'eq':
      return equal(left, right)
    case 'gt':
      return order(left, right) > 0
    case 'gte':
      return order(left, right) >= 0
    case 'lt':
      return order(left, right) < 0
    case 'lte':
      return order(left, right) <= 0
    case 'contains':
      return contains(left, right)
    case 'starts_with':
      return text(left).startsWith(text(right))
    case 'ends_with':
      return text(left).endsWith(text(right))
    case 'in':
      return list(right).some((item) => equal(left, item))
    case 'is_empty':
      return isEmpty(left)
  }
}

/** `compare` for many values on the left: a list on the right is searched in constant time. */
export function comparison(operator: ConditionOperator, right: unknown): (left: unknown) => boolean {
  const negated = negatedBy(operator)
  if (negated) {
    const holds = comparison(negated, right)
    return (left) => !holds(left)
  }
  const options = operator === 'in' ? list(right) : []
  if (options.length === 0 || options.some((option) => typeof option === 'object'))
    return (left) => compare(left, operator, right)
  const keys = new Set(options.flatMap((option) => keysOf(option, 'right')))
  return (left) =>
    isAbsent(left) || typeof left === 'object'
      ? compare(left, operator, right)
      : keysOf(left, 'left').some((key) => keys.has(key))
}

/** The equality of `eq`, `in` and the cases of a switch. */
export function equal(left: unknown, right: unknown): boolean {
  if (isAbsent(left) || isAbsent(right)) return isAbsent(left) && isAbsent(right)
  if (typeof left === 'object' || typeof right === 'object') return canonical(left) === canonical(right)
  const difference = compareNumbers(left, right)
  if (difference !== undefined) return difference === 0
  const moments = [time(left), time(right)]
  if (moments[0] !== undefined && moments[1] !== undefined) return moments[0] === moments[1]
  return text(left) === text(right)
}

/** Negative, zero or positive; NaN if the two have no order. */
function order(left: unknown, right: unknown): number {
  if (isEmpty(left) || isEmpty(right)) return Number.NaN
  const problem = uncomparable(left, right)
  if (problem !== undefined) throw new NodeError('not_comparable', `${problem}.`)
  const numbers = compareNumbers(left, right)
  if (numbers !== undefined) return numbers
  const times = [time(left), time(right)] as const
  if (times[0] !== undefined && times[1] !== undefined) return times[0] - times[1]
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  const [a, b] = [text(left), text(right)]
  return a < b ? -1 : a > b ? 1 : 0
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
 * lists and objects, which are all equal. Within a type it is the order of `gt` and `lt`. Undefined if the value is
 * empty.
 */
export function sortKey(value: unknown): SortKey | undefined {
  if (isEmpty(value)) return undefined
  if (isNumeric(value)) {
    const isLong = typeof value === 'string' && value.length > 15
    return { rank: 0, value: Number(value), ...(isLong && { exact: value }) }
  }
  const moment = time(value)
  if (moment !== undefined) return { rank: 1, value: moment }
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

function contains(left: unknown, right: unknown): boolean {
  if (Array.isArray(left)) return left.some((item) => equal(item, right))
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
function keysOf(value: unknown, side: 'left' | 'right'): string[] {
  const written = `"${text(value)}`
  const isLeft = side === 'left'
  if (typeof value === 'number') {
    const key = numberKey(value)
    return [`=${key}`, `${isLeft ? '<' : '>'}${key}`, written]
  }
  if (isNumeric(value)) return [`=${numberKey(value)}`]
  // A text such as `08` equals the number 8, but not the text `8`.
  if (isDigits(value)) return [`${isLeft ? '>' : '<'}${numberKey(value)}`, written]
  const moment = time(value)
  return [moment === undefined ? written : `@${moment}`]
}

function text(value: unknown): string {
  if (isNothing(value)) return ''
  return (typeof value === 'object' ? canonical(value) : String(value)).toLowerCase()
}

function time(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d([T ]|$)/.test(value)) return undefined
  const milliseconds = Date.parse(value)
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}

/** JSON with sorted keys: equal objects have equal JSON. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
