import type { Rates } from './exchange-rates.ts'

/** The order of a list: `sort=amount&order=asc`, or several fields: `sort=stage,-amount`. */
export interface Sort {
  field: string
  order: Order
  /** The rates of amounts in several currencies: see worth.ts. */
  rates?: Rates
}

export type Order = 'asc' | 'desc'

/** The maximum number of fields that a list is sorted by, before the id. */
export const MAX_SORTS = 3

/** The fields of `sort`. One with `-` before it is descending, the others have `order`. */
export const sortsOf = ({ sort, order }: { sort: string; order: Order }): Sort[] =>
  sort.split(',').map((written) => {
    const field = written.trim()
    return field.startsWith('-') ? { field: field.slice(1), order: 'desc' } : { field, order }
  })

/** Whether `sort` itself gives the direction: then a field without a sign is ascending. */
export const hasDirections = (sort: string): boolean => sort.includes(',') || sort.trim().startsWith('-')
