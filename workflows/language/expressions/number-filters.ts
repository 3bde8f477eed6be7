import type { FilterImplOptions } from 'liquidjs'
import {
  add,
  type Decimal,
  decimalText,
  divide,
  integer,
  multiply,
  negate,
  parseDecimal,
} from '../../shared/decimal.ts'

/**
 * The filters that compute. They are exact: `0.1 | plus: 0.2` is 0.3. If a value is a text with decimals, such as money,
 * the result is one too, with at least as many decimals; otherwise it is a number. With null or an empty text there is
 * nothing to compute: the result is null, not the amount 0.
 */
export const numberFilters: Record<string, FilterImplOptions> = {
  plus: computes(add),
  minus: computes((a, b) => add(a, negate(b))),
  times: computes(multiply),
  divided_by: computes((a, b) => {
    requireDivisor(b)
    const [dividend, divisor] = b.digits < 0n ? [negate(a), negate(b)] : [a, b]
    return divide(dividend, divisor, Math.max(a.places, b.places, PRECISION))
  }),
  modulo: computes((a, b) => {
    requireDivisor(b)
    const places = Math.max(a.places, b.places)
    const [dividend, divisor] = [scaled(a, places), scaled(b, places)]
    return { digits: ((dividend % divisor) + divisor) % divisor, places }
  }),
  at_least: computes((a, b) => (isLess(a, b) ? b : a)),
  at_most: computes((a, b) => (isLess(a, b) ? a : b)),
  abs: ofNumber((value) => result([value], positive(decimal(value)))),
  floor: ofNumber((value) => toInteger(value, 'floor')),
  ceil: ofNumber((value) => toInteger(value, 'ceil')),
  round: ofNumber(rounded),
  /** Towards zero, as conversions to a whole number do elsewhere. */
  to_integer: ofNumber((value) => toInteger(value, 'zero')),
  to_fixed: ofNumber((value, places = 2) => decimalText(roundedTo(value, places, 'to_fixed'))),
  /** `7030.8 | format_number: "1,234.00"` is 7,030.80: the number 1234 as the result shall be written. */
  format_number: ofNumber(formatted),
}

/** Decimals of a quotient that does not end. */
const PRECISION = 15
/** The most decimals that `round` writes. */
const MAX_PLACES = 20

function computes(compute: (a: Decimal, b: Decimal) => Decimal): FilterImplOptions {
  return (value: unknown, argument: unknown) =>
    isAbsent(value) || isAbsent(argument)
      ? null
      : result([value, argument], compute(decimal(value), decimal(argument)))
}

/** A filter of one number, with its argument. */
function ofNumber(compute: (value: unknown, argument?: unknown) => number | string): FilterImplOptions {
  return (value: unknown, argument?: unknown) => (isAbsent(value) ? null : compute(value, argument))
}

const isAbsent = (value: unknown) => value === null || value === undefined || value === ''

function requireDivisor({ digits }: Decimal): void {
  if (digits === 0n) throw new Error('the result is not finite: it divides by zero')
}

const isLess = (a: Decimal, b: Decimal) => add(a, negate(b)).digits < 0n
const positive = (value: Decimal): Decimal => (value.digits < 0n ? negate(value) : value)
const scaled = ({ digits, places }: Decimal, to: number) => digits * 10n ** BigInt(to - places)

/** Throws an error for the author for a text that is no number. */
function decimal(value: unknown): Decimal {
  if (value === false) return integer(0)
  if (value === true) return integer(1)
  const found = parseDecimal(value)
  if (found) return found
  const shown = typeof value === 'object' ? 'a list or a mapping' : JSON.stringify(String(value).slice(0, 50))
  throw new Error(`${shown} is no number`)
}

/** The decimals of the texts among the operands; undefined if none is a text with decimals. */
function writtenPlaces(operands: readonly unknown[]): number | undefined {
  const texts = operands.filter((one): one is string => typeof one === 'string' && one.includes('.'))
  return texts.length > 0 ? Math.max(...texts.map((text) => parseDecimal(text)?.places ?? 0)) : undefined
}

/** A number; a text if an operand is one with decimals, or if a number would not be exact. */
export function result(operands: readonly unknown[], value: Decimal): number | string {
  const places = writtenPlaces(operands)
  const shortest = trimmed(value, places ?? 0)
  const text = decimalText(shortest)
  if (places !== undefined) return text
  const number = Number(text)
  const isExact = shortest.places > 0 || Number.isSafeInteger(number)
  return isExact || !operands.some((one) => typeof one === 'string') ? number : text
}

/** Without zeros at the end, down to `least` decimals. */
function trimmed({ digits, places }: Decimal, least: number): Decimal {
  let [left, count] = [digits, places]
  while (count > least && left % 10n === 0n) [left, count] = [left / 10n, count - 1]
  return count < least
    ? { digits: left * 10n ** BigInt(least - count), places: least }
    : { digits: left, places: count }
}

function toInteger(value: unknown, towards: 'floor' | 'ceil' | 'zero'): number | string {
  const { digits, places } = decimal(value)
  const unit = 10n ** BigInt(places)
  const whole = digits / unit
  const rest = digits % unit
  const up = towards === 'ceil' ? rest > 0n : false
  const down = towards === 'floor' ? rest < 0n : false
  return result([], { digits: whole + (up ? 1n : down ? -1n : 0n), places: 0 })
}

/** A text with decimals gets exactly `places` of them. */
function rounded(value: unknown, given: unknown): number | string {
  const places = Number(given ?? 0)
  const found = roundedTo(value, places, 'round')
  if (places < 0) return result([], found)
  return writtenPlaces([value]) === undefined || places === 0
    ? Number(decimalText(found))
    : decimalText(found)
}

/** A separator of thousands, one of `MARKS` or none; and a mark with decimals, or none. */
const FORMAT = /^1([^\d]?)234(?:([.,])(0+))?$/
const MARKS = ['', ',', '.', "'", '’', ' ', '\u00a0', '\u202f', '_']

/** Why a text is no format of `format_number`; undefined if it is one. */
export function numberFormatProblem(format: unknown): string | undefined {
  const [, thousands, mark, zeros = ''] = FORMAT.exec(String(format)) ?? []
  const isFormat = thousands !== undefined && MARKS.includes(thousands) && thousands !== mark
  if (isFormat && zeros.length <= MAX_PLACES) return undefined
  return 'format_number takes the number 1234 as it shall be written: "1,234.00", "1.234,00", "1 234"'
}

function formatted(value: unknown, format: unknown): string {
  const problem = numberFormatProblem(format)
  if (problem !== undefined) throw new Error(problem)
  const [, thousands = '', mark = '', zeros = ''] = FORMAT.exec(String(format))!
  const [whole = '', decimals = ''] = decimalText(roundedTo(value, zeros.length, 'format_number')).split('.')
  return whole.replaceAll(/\B(?=(\d{3})+$)/g, () => thousands) + mark + decimals
}

/** Halves are rounded away from zero. Without decimals below zero: `-2` rounds to hundreds. */
function roundedTo(value: unknown, given: unknown, filter: string): Decimal {
  const places = Number(given)
  if (!Number.isInteger(places) || Math.abs(places) > MAX_PLACES)
    throw new Error(`${filter} takes a number of decimals, at most ${MAX_PLACES}`)
  const exact = decimal(value)
  if (places >= 0) return divide(exact, integer(1), places)
  const unit = { digits: 10n ** BigInt(-places), places: 0 }
  return multiply(divide(exact, unit, 0), unit)
}
