import { type Context, defaultOperators, toValue } from 'liquidjs'
import { compareNumbers } from '../../shared/decimal.ts'
import { compareBeginnings, compareTimes } from '../compare-times.ts'
import { uncomparable } from '../uncomparable.ts'
import { timezoneIn } from './scope-context.ts'

/**
 * The comparisons of expressions. Numbers, also those that are written as text, such as money, compare by their value;
 * times by the moment, and with a day by the day; other text as it is written. An empty text equals null, as records
 * store it. Nothing is greater or less than null.
 */
export const comparisons = {
  '==': (left: unknown, right: unknown, context: Context) => equals(left, right, timezoneIn(context)),
  '!=': (left: unknown, right: unknown, context: Context) => !equals(left, right, timezoneIn(context)),
  '>': (left: unknown, right: unknown, context: Context) => ordered(left, right, context) > 0,
  '<': (left: unknown, right: unknown, context: Context) => ordered(left, right, context) < 0,
  '>=': (left: unknown, right: unknown, context: Context) => ordered(left, right, context) >= 0,
  '<=': (left: unknown, right: unknown, context: Context) => ordered(left, right, context) <= 0,
  contains: (left: unknown, right: unknown, context: Context) =>
    Array.isArray(left)
      ? left.some((item) => equals(item, right, timezoneIn(context)))
      : typeof left === 'string' && (typeof right === 'string' || typeof right === 'number')
        ? left.includes(String(right))
        : false,
}

type Settled = (left: unknown, right: unknown) => Generator<unknown, boolean, unknown>

/** `timezone`: of days, and of times without an offset. */
export function equals(left: unknown, right: unknown, timezone: string): boolean {
  if (isAbsent(left) && isAbsent(right)) return true
  const difference = compareNumbers(left, right)
  if (difference !== undefined) return difference === 0
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => equals(item, right[index], timezone))
  const times = compareTimes(left, right, timezone)
  if (times !== undefined) return times === 0
  // `nil`, `empty` and `blank` compare themselves. Without promises the first step is the result.
  return finish((defaultOperators['=='] as Settled)(left, right))
}

/** Null or an empty text, also as the literals `nil`, `empty` and `blank`. */
function isAbsent(value: unknown): boolean {
  const plain = toValue(value)
  return plain === null || plain === undefined || plain === ''
}

function finish(steps: Generator<unknown, boolean, unknown>): boolean {
  let step = steps.next()
  while (!step.done) step = steps.next(isSteps(step.value) ? finish(step.value) : step.value)
  return step.value
}

const isSteps = (value: unknown): value is Generator<unknown, boolean, unknown> =>
  typeof value === 'object' && value !== null && 'next' in value && typeof value.next === 'function'

/** Throws an error for the author if both are written as times or numbers, but not in a form that is read. */
function ordered(left: unknown, right: unknown, context: Context): number {
  const found = compareNumbers(left, right) ?? compareTimes(left, right, timezoneIn(context))
  if (found !== undefined) return found
  const problem = uncomparable(left, right)
  if (problem !== undefined) throw new Error(problem)
  return textOrder(left, right)
}

/** The order of a sort: negative, zero or positive; NaN if the two have none. */
export const order = (left: unknown, right: unknown, timezone: string): number =>
  compareNumbers(left, right) ?? compareBeginnings(left, right, timezone) ?? textOrder(left, right)

function textOrder(left: unknown, right: unknown): number {
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  if (left.trim() === '' || right.trim() === '') return Number.NaN
  return left < right ? -1 : left > right ? 1 : 0
}
