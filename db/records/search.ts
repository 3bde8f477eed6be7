import type { Tenant } from '../postgres/tenancy.ts'
import type { Fragment } from './filter-sql.ts'
import { gatherPage, type Listing, type Row, searched, selectPage, walkToPage } from './pages.ts'
import { EXACT_UP_TO } from './total.ts'

/** So many records for each row of a page are looked at first: what one in a hundred says fills a page. */
const NEAREST_PER_ROW = 100
const MAX_NEAREST = 10_000
/** A page of what is in too many records to gather is found among so many, unless the last ones have little of it. */
const MAX_WALKED = 100_000

export interface Found {
  rows: Row[]
  /** How many match, where the search has shown it: `many` are more than are counted. */
  matching?: number | 'many'
  /** Which part of the records seems to match, where a walk along the order has shown it. */
  density?: number
}

/** Each word of a query as a condition. */
export const containing = (words: string[][]): Fragment[] =>
  words.map((patterns) => ({
    sql: `(${patterns.map(() => 'search_text like ?').join(' or ')})`,
    bindings: patterns,
  }))

/**
 * A page of what free text finds. Which way is quick depends on how common the words are, which the planner cannot
 * know: common ones are met soon along the order, rare ones have few records in the index. So the first is tried for a
 * little, then the second for some more; what is in between costs both.
 */
export async function searchPage(tx: Tenant, listing: Listing, isWalkable: boolean): Promise<Found> {
  const { limit, offset } = listing
  const walk = async (atMost: number): Promise<Found | undefined> => {
    if (!isWalkable) return undefined
    const rows = await walkToPage(tx, listing, atMost)
    const last = rows.at(-1)
    return last && rows.length === limit ? { rows, density: (offset + limit) / last.walked } : undefined
  }
  const nearest = (offset + limit) * NEAREST_PER_ROW
  const near = nearest <= MAX_NEAREST ? await walk(nearest) : undefined
  if (near) return near
  const { matching, rows } = await gatherPage(tx, listing, EXACT_UP_TO + 1)
  if (matching <= EXACT_UP_TO) return { rows, matching }
  const far = (await walk(MAX_WALKED)) ?? { rows: await selectPage(tx, listing, searched(listing.kind)) }
  return { ...far, matching: 'many' }
}
