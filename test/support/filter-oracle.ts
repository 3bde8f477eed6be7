import type { Operator } from '../../db/model/records/field-types.ts'

export type Comparable = string | number | boolean | string[] | null

/** Text in lower case, as lists compare it; the text order of times is their order. */
export function comparable(value: unknown): Comparable {
  if (value === null || value === undefined) return null
  if (Array.isArray(value)) return value.map((item) => String(item).toLowerCase())
  return typeof value === 'string' ? value.toLowerCase() : (value as number | boolean)
}

/** A time is compared with a bare date by its day. */
export const beside = <T>(value: T, given: unknown): T | string =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dt/i.test(value) && /^\d{4}-\d\d-\d\d$/.test(String(given))
    ? value.slice(0, 10)
    : value

const TEXTS = new Intl.Collator('en')

/** The order of two values as lists sort them: texts by the root collation of Unicode. */
export const compare = (a: Comparable, b: Comparable): number =>
  typeof a === 'string' && typeof b === 'string' ? TEXTS.compare(a, b) : a === b ? 0 : a! < b! ? -1 : 1

/** The meaning of a filter, applied to `comparable` values in memory. */
export function holds(found: Comparable, operator: Operator, given: Comparable[]): boolean {
  const [wanted, upTo] = given as [Comparable, Comparable]
  const value = beside(found, wanted)
  const isOneOf = given.some((one) => beside(found, one) === one)
  if (operator === 'is_null') return (value === null) === wanted
  if (operator === 'ne') return value !== wanted
  if (operator === 'nin') return !isOneOf
  if (operator === 'has_not') return !holds(found, 'has', given)
  if (operator === 'not_since') return !holds(found, 'gte', given)
  if (value === null || wanted === null || upTo === null) return false
  switch (operator) {
    case 'eq':
      return value === wanted
    case 'in':
      return isOneOf
    case 'has':
      return (value as string[]).includes(wanted as string)
    case 'gt':
      return compare(value, wanted) > 0
    case 'gte':
      return compare(value, wanted) >= 0
    case 'lt':
      return compare(value, wanted) < 0
    case 'lte':
      return compare(value, wanted) <= 0
    case 'between':
      return compare(value, wanted) >= 0 && compare(beside(found, upTo), upTo) <= 0
    case 'contains':
      return String(value).includes(String(wanted))
    case 'starts_with':
      return String(value).startsWith(String(wanted))
  }
}
