import { isObject } from './is-object.ts'

/** The last segment of a path to an amount of money. */
const OF_MONEY = /(^|[._])(amount|price|total|subtotal|cost|fee|sum|net|gross|balance|budget|revenue)$/i

/**
 * The currencies of the amounts that a field of the items holds, by the field `currency` beside it; empty for a field
 * that is no amount. Amounts of two currencies cannot be added.
 */
export function currenciesOf(items: readonly unknown[], field: string): string[] {
  if (!OF_MONEY.test(field)) return []
  const path = [...field.split('.').slice(0, -1), 'currency']
  const found = items.flatMap((item) => {
    const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), item)
    return typeof value === 'string' && value !== '' ? [value.toUpperCase()] : []
  })
  return [...new Set(found)].sort()
}

export const mixedCurrencies = (field: string, currencies: readonly string[]): string =>
  `${field} is in ${currencies.slice(0, 5).join(' and ')}, and amounts of several currencies cannot be added`
