import { decimalText, parseDecimal } from '../../../workflows/shared/decimal.ts'
import { placesOf } from '../../../workflows/shared/exchange-rates.ts'
import type { Rates } from './exchange-rates.ts'
import { atItsKind, type Filter, typeOf } from './filters.ts'
import type { Kind } from './kind.ts'
import type { Sort } from './sorts.ts'

/**
 * What amounts are worth in the currency of the organization: by that, amounts of several currencies are compared, in
 * filters and sorts that name no currency.
 */

/** Whether a field is an amount with a currency beside it. */
const isAmount = (kind: Kind, field: string): boolean =>
  typeOf(kind, field)?.type === 'money' && kind.fields.currency?.type === 'currency'

/** The amounts that a filter compares. */
export interface Compared {
  kind: Kind
  /** Whether they are of linked records, not of the listed ones. */
  isLinked: boolean
  /** Whether the other filters leave a currency. */
  leaves: (currency: string) => boolean
}

/**
 * The amounts that a filter compares by their worth; undefined if it compares none, or if another filter names their one
 * currency. Of linked records, any may meet each filter: there a currency names that of no other filter.
 */
export function comparedBy(
  kind: Kind,
  filter: Filter,
  { filters, match }: { filters: readonly Filter[]; match: 'all' | 'any' },
): Compared | undefined {
  const { kind: of, filter: own } = atItsKind(kind, filter)
  if (!isAmount(of, own.field) || filter.operator === 'is_null' || filter.values.length === 0)
    return undefined
  const beside = filter.field.slice(0, -own.field.length)
  const isSame = match === 'all' && !beside.startsWith('associations.')
  if (isSame && names(filters, `${beside}currency`)) return undefined
  const leaves = (currency: string) =>
    !isSame || filters.every((other) => other.field !== `${beside}currency` || allows(other, currency))
  return { kind: of, isLinked: beside !== '', leaves }
}

/** Whether a filter by currency leaves one; the operators by parts of its code leave any. */
function allows({ operator, values }: Filter, currency: string): boolean {
  const isNamed = values.some((value) => value.toUpperCase() === currency)
  if (operator === 'eq' || operator === 'in') return isNamed
  return operator === 'ne' || operator === 'nin' ? !isNamed : true
}

/** Whether a list is sorted by the worth of amounts. */
export const sortsByWorth = (
  kind: Kind,
  { field }: Sort,
  { filters, match }: { filters: readonly Filter[]; match: 'all' | 'any' },
): boolean => isAmount(kind, field) && !(match === 'all' && names(filters, 'currency'))

/** Whether a filter leaves one currency. */
const names = (filters: readonly Filter[], name: string): boolean =>
  filters.some(
    ({ field, operator, values }) =>
      field === name && (operator === 'eq' || operator === 'in') && values.length === 1,
  )

/**
 * SQL: an amount in the currency of the organization. Null without a rate. An amount without a currency is in that of
 * the organization. `rounded`: to its smallest unit, as a person who compares it with a number knows it.
 */
export function worthSql(field: string, rates: Rates, { rounded }: { rounded: boolean }): string {
  const [own, ...others] = rangesOf(field, rates)
  const cases = others.map(
    ({ currency, worth }) =>
      `when ${currency} then ${rounded ? `round(${worth}, ${placesOf(rates.base)})` : worth}`,
  )
  return `(case when ${own!.currency} then ${own!.worth} ${cases.join(' ')} end)`
}

/** Amounts of one currency, whose order by worth is that by amount. All members but `field` are SQL. */
export interface WorthRange {
  field: string
  /** The condition of the currency. */
  currency: string
  worth: string
  rate: string
}

/** The ranges of an index by currency and amount; the first is the organization's own currency. */
function rangesOf(field: string, { base, rates }: Rates): WorthRange[] {
  const own = { field, currency: `currency is null or currency = ${quoted(base)}`, worth: field, rate: '1' }
  const others = Object.entries(rates).map(([currency, given]) => {
    const rate = decimalText(parseDecimal(given)!)
    return { field, currency: `currency = ${quoted(currency)}`, worth: `${field} * ${rate}`, rate }
  })
  return [own, ...others]
}

/** As `rangesOf`, each with one value of the index's first column. */
export function indexedRanges(field: string, rates: Rates): WorthRange[] {
  const [own, ...others] = rangesOf(field, rates)
  const values = ['currency is null', `currency = ${quoted(rates.base)}`]
  return [...values.map((currency) => ({ ...own!, currency })), ...others]
}

/** Only the form of a currency passes, since it is no binding. */
function quoted(currency: string): string {
  if (!/^[A-Z]{3}$/.test(currency)) throw new Error('not a code of ISO 4217')
  return `'${currency}'`
}
