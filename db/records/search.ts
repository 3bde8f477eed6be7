import { EXACT_UP_TO } from '../lists/total.ts'
import type { Fragment } from '../model/records/fragment.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { gatherPage, type Listing, type Row, scanPage, searchView, selectPage } from './pages.ts'
import { sortedPage } from './sorted.ts'

/** Row limit of the first index-order scan, per row of the page: enough for words in one record of a hundred. */
const FIRST_SCAN_PER_ROW = 100
const MAX_FIRST_SCAN = 10_000
/** Row limit of the second index-order scan. */
const MAX_SCANNED = 100_000

export interface Found {
  rows: Row[]
  /** The number of matches, if known; `many`: more than EXACT_UP_TO. */
  matching?: number | 'many'
  /** The estimated fraction of matching records, if an index-order scan found the page. */
  selectivity?: number
}

/** The condition of each word of a query. */
export const wordConditions = (words: string[][]): Fragment[] =>
  words.map((patterns) => ({
    sql: `(${patterns.map(() => 'search_text like ?').join(' or ')})`,
    bindings: patterns,
  }))

/**
 * A page of a full-text search, or of filters by related records. The fastest plan depends on the selectivity of the
 * words, which the planner cannot estimate: an index-order scan soon finds common words, the text index returns few
 * records for rare words. So it tries a short scan, then the text index, then a longer scan; words of medium selectivity
 * cost all three.
 */
export async function searchPage(tx: Tenant, listing: Listing): Promise<Found> {
  const { limit, offset, keys } = listing
  const [key] = keys
  const scan = async (maxScanned: number): Promise<Found | undefined> => {
    // The scan reads one index; a nullable key has two.
    if (keys.length > 1 || !key!.indexed || key!.nullable) return undefined
    const rows = await scanPage(tx, listing, maxScanned)
    const last = rows.at(-1)
    return last && rows.length === limit ? { rows, selectivity: (offset + limit) / last.scanned } : undefined
  }
  const firstScan = (offset + limit) * FIRST_SCAN_PER_ROW
  const first = firstScan <= MAX_FIRST_SCAN ? await scan(firstScan) : undefined
  if (first) return first
  const { matching, rows } = await gatherPage(tx, listing, EXACT_UP_TO + 1)
  if (matching <= EXACT_UP_TO) return { rows, matching }
  const page = (await scan(MAX_SCANNED)) ?? {
    rows: (await sortedPage(tx, listing)) ?? (await selectPage(tx, listing, searchView(listing.kind))),
  }
  return { ...page, matching: 'many' }
}
