import { fieldReader } from './field-reader.ts'

/** The last segment of a path to an amount of money. */
const OF_MONEY = /(^|[._])(amount|price|total|subtotal|cost|fee|sum|net|gross|balance|budget|revenue)$/i

/** The currencies of amounts, by the field beside them. */
export interface Currencies {
  /** The path of the field `currency`. */
  path: string
  /** Each currency as the first item writes it; case makes no other one. */
  codes: string[]
}

/**
 * The currencies of the amounts that a field of the items holds; none for a field that is no amount. Amounts of two
 * currencies cannot be added. An item without an amount adds none.
 */
export function currenciesOf(items: readonly unknown[], field: string): Currencies {
  const path = [...field.split('.').slice(0, -1), 'currency'].join('.')
  const [readCode, readAmount] = [fieldReader(path), fieldReader(field)]
  const codes = new Map<string, string>()
  if (OF_MONEY.test(field))
    for (const item of items) {
      const code = readCode(item)
      const amount = readAmount(item) ?? ''
      if (amount === '' || typeof code !== 'string' || code === '') continue
      if (!codes.has(code.toUpperCase())) codes.set(code.toUpperCase(), code)
    }
  return { path, codes: [...codes.values()].sort() }
}

export const mixedCurrencies = (field: string, { codes }: Currencies): string =>
  `${field} is in ${codes.slice(0, 5).join(' and ')}, and amounts of several currencies cannot be added`
