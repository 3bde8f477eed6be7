import { type Decimal, integer, multiply, parseDecimal } from './decimal.ts'

/** Exchange rates of a day, from a source or the table that the service ships. */
export interface RateTable {
  /** The units of each currency for one of `base`, as decimals. */
  rates: Record<string, string>
  base: string
  /** The day of the rates. */
  date: string
  /** Whether it is the table that the service ships. */
  shipped?: true
}

/** Units for one euro that are fixed by law or treaty: valid without a source of rates, or if it does not list them. */
export const FIXED_RATES: Readonly<Record<string, string>> = {
  EUR: '1',
  BAM: '1.95583',
  BGN: '1.95583',
  CVE: '110.265',
  HRK: '7.53450',
  KMF: '491.96775',
  XAF: '655.957',
  XOF: '655.957',
}

/** A rate as a fraction: nothing is rounded before the result. */
export interface Rate {
  above: Decimal
  /** Greater than 0. */
  below: Decimal
}

/** @param rate a decimal as in DECIMAL. */
export const plainRate = (rate: string | number): Rate => ({ above: parseDecimal(rate)!, below: integer(1) })

/** The units of a currency for one of another: `a` and `b` are those of the two for one of a third. */
export const crossRate = (a: Rate, b: Rate): Rate => ({
  above: multiply(a.above, b.below),
  below: multiply(a.below, b.above),
})

/** A currency's units for one euro, by the table or as fixed; undefined without either. */
export function perEuro(code: string, table?: RateTable): Rate | undefined {
  const all = withBase(table)
  const euro = all.EUR
  if (Object.hasOwn(all, code) && euro !== undefined) return crossRate(plainRate(all[code]!), plainRate(euro))
  return Object.hasOwn(FIXED_RATES, code) ? plainRate(FIXED_RATES[code]!) : undefined
}

/** The currencies for which `perEuro` has a rate, in alphabetical order. */
export const ratedCurrencies = (table?: RateTable): string[] =>
  [...new Set([...Object.keys(withBase(table)), ...Object.keys(FIXED_RATES)])].sort()

const withBase = (table?: RateTable): Record<string, string> =>
  table ? { ...table.rates, [table.base]: '1' } : {}

/** The decimal places of a currency, by ISO 4217: 2 for EUR, none for JPY. */
export const placesOf = (currency: string): number =>
  new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits ?? 2
