import { isNumeric } from '../shared/decimal.ts'

const TIME = /^\d{4}-\d\d-\d\d([T ]|$)/
/** A day or a number as people write it, such as `31.12.2026`, `12,50` or `1'000`. */
const LOCAL_DAY = /^\s*\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b/
const LOCAL_NUMBER = /^\s*-?\d[\d'’., ]*$/

/**
 * Why two values have no order, although both are written as times or as numbers: as letters, `01.12.2026` would be
 * before `2026-11-27`. Undefined if they may be compared.
 */
export function uncomparable(left: unknown, right: unknown): string | undefined {
  for (const [one, other] of [
    [left, right],
    [right, left],
  ]) {
    if (typeof one !== 'string') continue
    const shown = JSON.stringify(one.slice(0, 50))
    if (LOCAL_DAY.test(one) && typeof other === 'string' && TIME.test(other))
      return `${shown} is no time such as 2026-01-31, and cannot be compared with one`
    const isNumber = LOCAL_NUMBER.test(one) && !/^\s*-?\d+(\.\d+)?\s*$/.test(one)
    if (isNumber && isNumeric(other) && !LOCAL_DAY.test(one))
      return `${shown} is no number such as 1250.00, and cannot be compared with one`
  }
  return undefined
}
