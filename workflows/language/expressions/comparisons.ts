import { defaultOperators, toValue } from 'liquidjs'
import { compareNumbers } from '../../shared/decimal.ts'
import { uncomparable } from '../uncomparable.ts'

/**
 * The comparisons of expressions. Numbers, also those that are written as text, such as money, compare by their value;
 * times by the moment; other text as it is written. An empty text equals null, as records store it. Nothing is greater
 * or less than null.
 */
export const comparisons = {
  '==': equals,
  '!=': (left: unknown, right: unknown) => !equals(left, right),
  '>': (left: unknown, right: unknown) => ordered(left, right) > 0,
  '<': (left: unknown, right: unknown) => ordered(left, right) < 0,
  '>=': (left: unknown, right: unknown) => ordered(left, right) >= 0,
  '<=': (left: unknown, right: unknown) => ordered(left, right) <= 0,
  contains: (left: unknown, right: unknown) =>
    Array.isArray(left)
      ? left.some((item) => equals(item, right))
      : typeof left === 'string' && (typeof right === 'string' || typeof right === 'number')
        ? left.includes(String(right))
        : false,
}

type Settled = (left: unknown, right: unknown) => Generator<unknown, boolean, unknown>

export function equals(left: unknown, right: unknown): boolean {
  if (isAbsent(left) && isAbsent(right)) return true
  const difference = compareNumbers(left, right)
  if (difference !== undefined) return difference === 0
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => equals(item, right[index]))
  const moments = [moment(left), moment(right)]
  if (moments[0] !== undefined && moments[1] !== undefined) return moments[0] === moments[1]
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
function ordered(left: unknown, right: unknown): number {
  const problem = uncomparable(left, right)
  if (problem !== undefined) throw new Error(problem)
  return order(left, right)
}

/** Negative, zero or positive; NaN if the two have no order. */
export function order(left: unknown, right: unknown): number {
  const numbers = compareNumbers(left, right)
  if (numbers !== undefined) return numbers
  if (typeof left !== 'string' || typeof right !== 'string') return Number.NaN
  if (left.trim() === '' || right.trim() === '') return Number.NaN
  const [a, b] = [moment(left), moment(right)]
  if (a !== undefined && b !== undefined) return a - b
  return left < right ? -1 : left > right ? 1 : 0
}

function moment(text: unknown): number | undefined {
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d([T ]|$)/.test(text)) return undefined
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}
