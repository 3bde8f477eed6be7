import { isNumeric } from '../shared/decimal.ts'
import { parseTime } from './time.ts'

/** A day as people write it, such as `31.12.2026`. */
const LOCAL_DAY = /^\s*\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b/
/** Months as English, German, French, Spanish, Italian and Dutch write those that begin as the English or German ones. */
const MONTH = `(?:${[
  'jan(?:uary?|uari|vier)?|feb(?:ruary?|ruari|rero|braio)?|mar(?:ch|s|zo)?|märz?|apr(?:il|ile)?|ma(?:i|y|yo)',
  'jun[ei]?|junio|jul[yi]?|julio|aug(?:ust|ustus)?|sep(?:t|tember|tembre|tiembre)?|o[ck]t(?:ober|obre|ubre)?',
  'nov(?:ember|embre|iembre)?|de[cz](?:ember)?',
].join('|')})(?![\\p{L}])`
/**
 * With two digits of the year: with a zero before the day or the month, or `27.11.26`, of the years 20 to 39. It may
 * still be a version, such as `10.12.25`, which cannot be told.
 */
const SHORT_DAY =
  /^\s*(?=0|\d{1,2}[.-]0|\d\d.\d\d.[23]\d)(?:0?[1-9]|[12]\d|3[01])([.-])(?:0?[1-9]|1[0-2])\1\d\d(?![\w.-])/
/** Those that are compared as no text: no phone number, and, but for `SHORT_DAY`, no version, as `1.2.345` or `10.11.12`. */
const CERTAIN_DAYS = [
  /^\s*\d{1,2}([./-])\d{1,2}\1((19|20)\d\d|(?<=\/)\d\d)(?![\w.])/,
  SHORT_DAY,
  new RegExp(`^\\s*(?:[a-z]{2,10}\\.?,? )?\\d{1,2}\\.?[ -]${MONTH}\\.?,?[ -]\\d{4}\\b`, 'iu'),
  new RegExp(`^\\s*(?:[a-z]{2,10}\\.?,? )?${MONTH}\\.? \\d{1,2},? \\d{4}\\b`, 'iu'),
  /^\s*\d{4}([/.-])\d{1,2}\1\d{1,2}(?:[Tt ]+\d{1,2}:\d\d.{0,20})?\s*$/,
]
/** Days of equal form whose letters are in the order of the days; what follows the day may be a time. */
const IN_ORDER = /^\s*(\d{4}([/.-])\d\d\2\d\d)\b(.*)$/s

const GROUPS = "[1-9]\\d{0,2}([’' .,\\u00a0\\u202f])\\d{3}(?:\\1\\d{3})*(?:(?!\\1)[.,]\\d+)?"
/** A number as people write it: `12,50`, or with groups of three digits, `1'000` and `1.234,50`. No phone or version. */
const LOCAL_NUMBER = new RegExp(`^\\s*-?(?:(?:0|[1-9]\\d*),\\d+|${GROUPS})\\s*$`)
/** The groups of India, such as `1,00,000`. */
const INDIAN_NUMBER = /^\s*-?[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?\s*$/
/** A number with what it counts: `CHF 1'000.00`, `12.5 %`. */
const UNIT = '(?:[$€£¥₹]|CHF|EUR|USD|GBP|INR)'
const COUNTED_NUMBER = new RegExp(`^\\s*(?:${UNIT} ?-?\\d[\\d.,’']*|-?\\d[\\d.,’']* ?(?:${UNIT}|%))\\s*$`)

/**
 * Why two values have no order, although they are written as times or as numbers: as letters, `01.12.2026` would be
 * before `2026-11-27` and `27.11.2026`. Undefined if they may be compared. Numbers and times that are read as such are
 * compared before.
 */
export function uncomparable(left: unknown, right: unknown): string | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ]) {
    if (typeof one !== 'string') continue
    const shown = JSON.stringify(one.slice(0, 50))
    if (typeof other === 'string' && areDays(one, other))
      return `${shown} is no time such as 2026-01-31, and cannot be compared with one${mayBeVersion(one, other)}`
    if (isLocalNumber(one) && (isNumeric(other) || isLocalNumber(other)))
      return `${shown} is no number such as 1250.00, and cannot be compared with one`
  }
  return undefined
}

/** The forms of values that have no order with some others. */
const SUSPECTS: readonly ((text: string) => boolean)[] = [
  (text) => isCertainDay(text) && !isTime(text),
  (text) => LOCAL_DAY.test(text) && !isTime(text),
  isLocalNumber,
]

/**
 * The same for the values of a sort, a minimum or a maximum. A sort compares only some pairs, in an order of its own: so
 * the first value of each form is compared with all others, and the time grows with the values only.
 */
export function uncomparableAmong(values: readonly unknown[]): string | undefined {
  const texts = values.filter((value): value is string => typeof value === 'string' && /\d/.test(value))
  for (const isSuspect of SUSPECTS) {
    const one = texts.find(isSuspect)
    if (one === undefined) continue
    for (const other of values) {
      const problem = other === one ? undefined : uncomparable(one, other)
      if (problem !== undefined) return problem
    }
  }
  return undefined
}

/** What to do if two texts are versions, which only the author knows. */
const mayBeVersion = (one: string, other: string): string =>
  SHORT_DAY.test(one) && SHORT_DAY.test(other)
    ? `; if it is a version, write a letter before both: ${JSON.stringify(`v${one.trim().slice(0, 50)}`)}`
    : ''

/** Whether both are days or times, and the first one is not read as such. */
function areDays(one: string, other: string): boolean {
  if (isTime(one)) return false
  if (isTime(other)) return LOCAL_DAY.test(one) || isCertainDay(one)
  if (areInOrder(one, other)) return false
  return isCertainDay(one) && (isCertainDay(other) || LOCAL_DAY.test(other))
}

/** Times of one day, such as `9:00` and `10:00`, have the order of their letters only if they are alike, without AM or PM. */
function areInOrder(one: string, other: string): boolean {
  const [, day, sign, time = ''] = IN_ORDER.exec(one) ?? []
  const [, otherDay, otherSign, otherTime = ''] = IN_ORDER.exec(other) ?? []
  if (sign === undefined || sign !== otherSign) return false
  const formOf = (text: string) => text.replaceAll(/\d/g, '0')
  return day !== otherDay || (formOf(time) === formOf(otherTime) && !/[ap]m\b/i.test(time))
}

function isTime(text: string): boolean {
  return parseTime(text) !== undefined
}

function isCertainDay(text: string): boolean {
  return CERTAIN_DAYS.some((form) => form.test(text))
}

/** `1.234` is read as a number. */
function isLocalNumber(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    !isNumeric(value) &&
    (LOCAL_NUMBER.test(value) || INDIAN_NUMBER.test(value) || COUNTED_NUMBER.test(value))
  )
}
