import { isNumeric } from '../shared/decimal.ts'

const TIME = /^\d{4}-\d\d-\d\d([T ]|$)/
/** A day as people write it, such as `31.12.2026`. */
const LOCAL_DAY = /^\s*\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b/
/** One that is no version, such as `1.2.345`. */
const CERTAIN_DAY = /^\s*\d{1,2}([./-])\d{1,2}\1((19|20)\d\d|(?<=\/)\d\d)(?![\w.])/
/** A number as people write it: `12,50`, or with groups of three digits, `1'000` and `1.234,50`. No phone or version. */
const LOCAL_NUMBER =
  /^\s*-?(?:(?:0|[1-9]\d*),\d+|[1-9]\d{0,2}([’' .,\u00a0\u202f])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?)\s*$/

/**
 * Why two values have no order, although they are written as times or as numbers: as letters, `01.12.2026` would be
 * before `2026-11-27` and `27.11.2026`. Undefined if they may be compared.
 */
export function uncomparable(left: unknown, right: unknown): string | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ]) {
    if (typeof one !== 'string') continue
    const shown = JSON.stringify(one.slice(0, 50))
    const isDay = LOCAL_DAY.test(one) && typeof other === 'string' && TIME.test(other)
    if (isDay || bothAre(CERTAIN_DAY, one, other))
      return `${shown} is no time such as 2026-01-31, and cannot be compared with one`
    if (isLocalNumber(one) && (isNumeric(other) || isLocalNumber(other)))
      return `${shown} is no number such as 1250.00, and cannot be compared with one`
  }
  return undefined
}

const bothAre = (form: RegExp, one: string, other: unknown) =>
  form.test(one) && typeof other === 'string' && form.test(other)

/** `1.234` is read as a number. */
const isLocalNumber = (value: unknown): value is string =>
  typeof value === 'string' && !isNumeric(value) && LOCAL_NUMBER.test(value)
