import { invalid } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { allOf, type Listing } from './pages.ts'
import { isMerged } from './sorted.ts'
import { planned } from './total.ts'

/**
 * The number of records up to which a list is sorted without an index in its order. 100,000 deals by `stage,-amount`
 * took 70 to 200 ms on two busy cores, and the time grows with the number.
 */
export const MAX_SORTED = 200_000

/** Whether an index has the order of a list, or that of its first field, within which few records are sorted. */
const isServed = (listing: Listing): boolean => {
  const [first, ...more] = listing.keys
  if (first!.sql === 'id' || isMerged(listing)) return true
  return first!.indexed && (more.length === 0 || !first!.nullable)
}

/**
 * Refuses a sort of too many records without an index, before the first page: later pages of a list, an export or a bulk
 * job go on. Throws `validation_error`.
 */
export async function requireFewToSort(
  tx: Tenant,
  listing: Listing,
  { sort, max }: { sort: string; max: number },
): Promise<void> {
  if (listing.position || isServed(listing)) return
  const { kind, among, conditions, keys } = listing
  if ((await planned(tx, kind, allOf([among, ...conditions]))) <= max) return
  const isConverted = keys.some((key) => key.isConverted)
  const sorted = Object.entries(kind.fields).flatMap(([name, { type, sorted }]) =>
    sorted && !(isConverted && type === 'money') ? name : [],
  )
  throw invalid([
    {
      loc: ['query', 'sort'],
      msg: `more than ${max.toLocaleString('en')} ${kind.entity} match, too many to be sorted by ${sort}`,
      type: 'too_big',
      input: sort,
      hint: `${isConverted ? 'name a currency, such as currency=EUR, ' : ''}filter them, or sort by one of ${['created_at', 'updated_at', 'id', ...sorted].join(', ')}`,
    },
  ])
}
