import { decimalText, divide } from '../../../workflows/shared/decimal.ts'
import { crossRate, FIXED_RATES, perEuro, ratedCurrencies } from '../../../workflows/shared/exchange-rates.ts'
import { SHIPPED_RATES } from '../../../workflows/shared/shipped-rates.ts'

/** The rates by which amounts compare. */
export interface Rates {
  /** The currency of the organization. */
  base: string
  /** The units of `base` for one of each currency, as decimals. */
  rates: Readonly<Record<string, string>>
  /** Whether every amount of the list has one of these currencies. */
  isWhole?: boolean
}

export interface ExchangeRate {
  currency: string
  base: string
  /** The units of `base` for one of `currency`, as a decimal. */
  rate: string
  /** The day from which it counts; null: fixed by law. */
  valid_from: string | null
  /** `own`: set by the organization; `shipped`: from the table that the service ships. */
  source: 'own' | 'shipped' | 'fixed'
}

/** The decimals of a rate that is made of two others: 1 IDR is 0.0000551 USD. */
const RATE_PLACES = 15

/** The rates of currencies for which the organization has none of its own. Empty for a base without a rate. */
export function shippedRates(base: string): ExchangeRate[] {
  const to = perEuro(base, SHIPPED_RATES)
  if (!to) return []
  return ratedCurrencies(SHIPPED_RATES)
    .filter((currency) => currency !== base)
    .map((currency): ExchangeRate => {
      const { above, below } = crossRate(to, perEuro(currency, SHIPPED_RATES)!)
      const isFixed = [base, currency].every((code) => Object.hasOwn(FIXED_RATES, code))
      return {
        currency,
        base,
        rate: plainText(decimalText(divide(above, below, RATE_PLACES))),
        valid_from: isFixed ? null : SHIPPED_RATES.date,
        source: isFixed ? 'fixed' : 'shipped',
      }
    })
}

/** A decimal without zeros at its end. */
export const plainText = (decimal: string): string =>
  decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal
