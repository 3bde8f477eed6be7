import type { FilterImplOptions } from 'liquidjs'
import { currenciesOf, mixedCurrencies } from '../../shared/currencies.ts'
import { add, type Decimal, integer, parseDecimal } from '../../shared/decimal.ts'
import { uncomparableAmong } from '../uncomparable.ts'
import { equals, order } from './comparisons.ts'
import { result } from './number-filters.ts'
import { type Applied, timezoneIn } from './scope-context.ts'

/** The filters of lists that compare or add: they follow the rules of the operators, also for numbers in texts. */
export const listFilters: Record<string, FilterImplOptions> = {
  sum: (list: unknown, field?: unknown) => sumOf(itemsOf(list), field),
  sort: sorting(order),
  sort_natural: sorting((a, b, timezone) => order(lowered(a), lowered(b), timezone)),
  where: searching((list, holds) => list.filter(holds)),
  reject: searching((list, holds) => list.filter((item) => !holds(item))),
  find: searching((list, holds) => list.find(holds) ?? null),
  find_index: searching((list, holds) => {
    const index = list.findIndex(holds)
    return index < 0 ? null : index
  }),
  has: searching((list, holds) => list.some(holds)),
  uniq: (list: unknown, field?: unknown) => distinct(itemsOf(list), field),
}

/** The items with different values of a field, the first of each. Items whose field is missing or empty are not the same. */
function distinct(items: unknown[], field: unknown): unknown[] {
  const read = reader(field)
  const seen = new Set<unknown>()
  return items.filter((item) => {
    const value = nullIfEmpty(read(item))
    if (value === null && field !== undefined) return true
    const key = typeof value === 'object' ? JSON.stringify(value) : value
    const isNew = !seen.has(key)
    seen.add(key)
    return isNew
  })
}

/** An empty text is no value, as null is none. */
const nullIfEmpty = (value: unknown): unknown =>
  value === undefined || (typeof value === 'string' && value.trim() === '') ? null : value

const itemsOf = (list: unknown): unknown[] =>
  Array.isArray(list) ? list : list === null || list === undefined ? [] : [list]

/** The value at a dotted path; undefined if there is none. */
function reader(field: unknown): (item: unknown) => unknown {
  if (field === undefined || field === null) return (item) => item
  const path = String(field).split('.')
  return (item) => {
    let value = item
    for (const key of path) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
      value = (value as Record<string, unknown>)[key]
    }
    return value
  }
}

/** A filter that tests the items of a list. */
function searching(
  search: (list: unknown[], holds: (item: unknown) => boolean) => unknown,
): FilterImplOptions {
  return function (this: Applied, list: unknown, ...test: unknown[]) {
    return search(itemsOf(list), testOf(test, timezoneIn(this.context)))
  }
}

/** `where: "stage", "won"`; without a value, the field must be neither false nor null. */
function testOf([field, ...expected]: unknown[], timezone: string): (item: unknown) => boolean {
  const read = reader(field)
  if (expected.length === 0 || expected[0] === undefined)
    return (item) => {
      const value = read(item)
      return value !== undefined && value !== null && value !== false
    }
  return (item) => equals(read(item) ?? null, expected[0], timezone)
}

/** Throws an error for the author if no item has the field: the sum would be 0 for a misspelt name. */
function sumOf(list: unknown[], field: unknown): number | string {
  const read = reader(field)
  const values = list.map(read)
  if (field !== undefined && list.length > 0 && values.every((value) => value === undefined))
    throw new Error(`no item of the list has the field ${String(field).slice(0, 100)}`)
  const currencies = currenciesOf(list, String(field ?? ''))
  const { path, codes } = currencies
  if (codes.length > 1)
    throw new Error(
      `${mixedCurrencies(String(field), currencies)}: select one before, \`| where: "${path}", "${codes[0]}"\``,
    )
  const present = values.filter((value) => value !== undefined && value !== null && value !== '')
  const numbers = present.map((value): Decimal => {
    const found = parseDecimal(value)
    if (!found) throw new Error(`${JSON.stringify(value)?.slice(0, 50)} is no number`)
    return found
  })
  return result(present, numbers.reduce(add, integer(0)))
}

/** The argument of a sort that `reverse` follows: see `sortDescending`. */
export const DESCENDING = 'descending'

/** Null and empty texts come last, also in a list that is then reversed. */
function sorting(compare: (a: unknown, b: unknown, timezone: string) => number): FilterImplOptions {
  return function (this: Applied, list: unknown, ...given: unknown[]) {
    const timezone = timezoneIn(this.context)
    const isPair = (one: unknown) => Array.isArray(one) && one[0] === DESCENDING
    const emptyFirst = given.some(isPair) ? -1 : 1
    const read = reader(given.find((one) => !isPair(one)))
    const rows = itemsOf(list).map((item) => ({ item, key: nullIfEmpty(read(item)) }))
    const problem = uncomparableAmong(rows.map(({ key }) => key))
    if (problem !== undefined) throw new Error(problem)
    rows.sort((a, b) => {
      if (a.key === null || b.key === null)
        return a.key === b.key ? 0 : a.key === null ? emptyFirst : -emptyFirst
      return compare(a.key, b.key, timezone) || 0
    })
    return rows.map(({ item }) => item)
  }
}

const lowered = (value: unknown) => (typeof value === 'string' ? value.toLowerCase() : value)
