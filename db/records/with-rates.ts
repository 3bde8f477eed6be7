import type { Rates } from '../model/records/exchange-rates.ts'
import type { Filter } from '../model/records/filters.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Sort } from '../model/records/sorts.ts'
import { comparedBy, sortsByWorth } from '../model/records/worth.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { organizationCurrency } from './currency.ts'
import { readRates } from './exchange-rates.ts'
import { queryRows, searchView } from './pages.ts'

interface Ordered {
  filters: Filter[]
  sorts: Sort[]
  match: 'all' | 'any'
  /** Whether the records are deleted ones, whose currencies no index tells. */
  deleted: true | undefined
}

type Rated = Pick<Ordered, 'filters' | 'sorts'>

/**
 * The filters and sorts of a list with the rates by which they compare amounts. Where all amounts are in one currency
 * nothing is converted, so that a sort reads its index.
 */
export async function withRates(tx: Tenant, kind: Kind, query: Ordered): Promise<Rated> {
  const compared = query.filters.map((filter) => comparedBy(kind, filter, query))
  const sorted = query.sorts.map((sort) => sortsByWorth(kind, sort, query))
  const found = [...compared, sorted.includes(true) ? kind : undefined]
  const kinds = new Set(found.filter((one) => one !== undefined))
  if (kinds.size === 0) return query
  const used = new Map<Kind, string[] | undefined>()
  for (const one of kinds) used.set(one, query.deleted ? undefined : await usedCurrencies(tx, one))
  const own = await organizationCurrency(tx)
  const isForeign = (of: Kind) => used.get(of)?.some((currency) => currency !== own) ?? true
  if (![...kinds].some(isForeign)) return query
  const all = new Set([...used.values()].flatMap((currencies) => currencies ?? []))
  const { base, rates } = await readRates(tx, query.deleted ? undefined : [...all])
  const ratesOf = (of: Kind): Rates => {
    const currencies = used.get(of)
    const some = Object.entries(rates).filter(([currency]) => currencies?.includes(currency) ?? true)
    const isWhole = currencies?.every((one) => one === base || Object.hasOwn(rates, one)) ?? false
    return { base, rates: Object.fromEntries(some), isWhole }
  }
  // The order of one currency is the same in each.
  const isMixed = (used.get(kind)?.length ?? 2) > 1
  return {
    filters: query.filters.map((filter, at) => {
      const of = compared[at]
      return of && isForeign(of) ? { ...filter, rates: ratesOf(of) } : filter
    }),
    sorts: query.sorts.map((sort, at) => (sorted[at] && isMixed ? { ...sort, rates: ratesOf(kind) } : sort)),
  }
}

/** The currencies of a kind's records. Each is one step in the index, however many records have it. */
async function usedCurrencies(tx: Tenant, kind: Kind): Promise<string[]> {
  const next = (after: string) =>
    `select currency from ${searchView(kind)} where organization_id = ? and deleted_at is null
       and currency ${after} order by currency limit 1`
  const rows = await queryRows<{ currency: string }>(
    tx,
    `with recursive used as (
       (${next('is not null')})
       union all
       select (${next('> used.currency')}) from used where used.currency is not null
     )
     select currency from used where currency is not null`,
    [tx.organizationId, tx.organizationId],
  )
  return rows.map(({ currency }) => currency)
}
