import { invalid } from '../model/errors.ts'
import type { Rates } from '../model/records/exchange-rates.ts'
import type { Filter } from '../model/records/filters.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Sort } from '../model/records/sorts.ts'
import { type Compared, comparedBy, sortsByWorth } from '../model/records/worth.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { organizationCurrency } from './currency.ts'
import { readRates } from './exchange-rates.ts'
import { usedCurrencies } from './used-currencies.ts'

interface Ordered {
  filters: Filter[]
  sorts: Sort[]
  match: 'all' | 'any'
  /** Whether the listed records are deleted ones. */
  deleted?: true | undefined
}

/** The rates by which each filter and each sort compares amounts; null: as they are. */
export interface Comparison {
  filters: (Rates | null)[]
  sorts: (Rates | null)[]
}

/**
 * The rates by which a list compares amounts; null if it compares all as they are. Amounts that all have one currency are
 * compared in it: most organizations never set theirs. Throws `validation_error` for a filter that compares amounts in a
 * currency without a rate.
 */
export async function comparisonOf(tx: Tenant, kind: Kind, query: Ordered): Promise<Comparison | null> {
  const compared = query.filters.map((filter) => comparedBy(kind, filter, query))
  const sorted = query.sorts.map((sort) => sortsByWorth(kind, sort, query))
  if (!sorted.includes(true) && compared.every((one) => !one)) return null
  const own = await organizationCurrency(tx)
  const read = new Map<string, Promise<string[]>>()
  const used = (of: Kind, deleted: boolean) => {
    const key = `${of.entity} ${deleted}`
    const found = read.get(key) ?? usedCurrencies(tx, of, { own, deleted })
    read.set(key, found)
    return found
  }
  const usedBy = ({ kind: of, isLinked }: Compared) => used(of, !isLinked && query.deleted === true)
  const ofFilters: string[][] = []
  for (const one of compared) ofFilters.push(one ? await usedBy(one) : [])
  const ofSorts = sorted.includes(true) ? await used(kind, query.deleted === true) : []
  const mixed = [...ofFilters, ofSorts].filter(({ length }) => length > 1)
  if (mixed.length === 0) return null
  const { base, rates } = await readRates(tx, [...new Set(mixed.flat())])
  const has = (currency: string) => currency === base || Object.hasOwn(rates, currency)
  const ratesOf = (currencies: string[]): Rates | null => {
    if (currencies.length < 2) return null
    const some = Object.entries(rates).filter(([currency]) => currencies.includes(currency))
    return { base, rates: Object.fromEntries(some), isWhole: currencies.every(has) }
  }
  requireRates(query.filters, (place) =>
    ofFilters[place]!.length < 2
      ? []
      : ofFilters[place]!.filter((currency) => !has(currency) && compared[place]!.leaves(currency)),
  )
  return {
    filters: ofFilters.map(ratesOf),
    sorts: sorted.map((isSorted) => (isSorted ? ratesOf(ofSorts) : null)),
  }
}

/** Currencies that an error names. */
const NAMED = 5

/** Amounts without a rate would be missing without a word. `missing`: the currencies of a filter that have no rate. */
function requireRates(filters: Filter[], missing: (place: number) => string[]): void {
  const issues = filters.flatMap(({ field, operator, values }, place) => {
    const codes = missing(place).slice(0, NAMED).join(', ')
    if (codes === '') return []
    const currency = field.replace(/[^.]+$/, 'currency')
    return {
      loc: ['query', operator === 'eq' ? field : `${field}[${operator}]`],
      msg: `compares amounts in ${codes}, without an exchange rate`,
      type: 'invalid_value',
      input: values.join(','),
      hint: `set it by PUT /v1/exchange-rates, or filter by ${currency} too, such as ${currency}=${codes.slice(0, 3)}`,
    }
  })
  if (issues.length > 0) throw invalid(issues)
}

/**
 * The filters and sorts of a list with the rates by which they compare amounts. `kept`: those of its first page, if that
 * was in another transaction.
 */
export async function withRates(
  tx: Tenant,
  kind: Kind,
  query: Ordered,
  kept: Comparison | null | undefined,
): Promise<Pick<Ordered, 'filters' | 'sorts'>> {
  const found =
    kept === undefined ? await comparisonOf(tx, kind, query) : kept && (await stillWhole(tx, kind, kept))
  if (!found) return query
  const rated = <One extends Filter | Sort>(one: One, rates: Rates | null | undefined): One =>
    rates ? { ...one, rates } : one
  return {
    filters: query.filters.map((filter, place) => rated(filter, found.filters[place])),
    sorts: query.sorts.map((sort, place) => rated(sort, found.sorts[place])),
  }
}

/** An amount in a new currency is in no part of the index that the kept rates name. */
async function stillWhole(tx: Tenant, kind: Kind, { filters, sorts }: Comparison): Promise<Comparison> {
  if (sorts.every((rates) => !rates)) return { filters, sorts }
  const own = await organizationCurrency(tx)
  const currencies = await usedCurrencies(tx, kind, { own, deleted: false })
  const isKnown = ({ base, rates }: Rates) =>
    currencies.every((one) => one === base || Object.hasOwn(rates, one))
  return { filters, sorts: sorts.map((rates) => rates && { ...rates, isWhole: isKnown(rates) }) }
}
