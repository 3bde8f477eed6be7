import type { Fragment } from '../model/records/fragment.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { SortKey } from './filter-sql.ts'
import {
  allOf,
  columns,
  type Listing,
  orderOf,
  queryRows,
  type Row,
  rowsAfterLike,
  searchView,
  sortValues,
} from './pages.ts'
import { planned } from './total.ts'

/** Row limit of the index-order scan, per row of the page; then all matching records are sorted instead. */
const SCANNED_PER_ROW = 100
/** Up to this number, matching records are sorted without an index-order scan. */
const FEW = 1_000

/**
 * A page in the order of a nullable field that is `sorted`, from its two indexes (db/migrations/sort-index.ts): records
 * with a value by it, then records without one by id. So nulls are last in both directions, and each direction scans an
 * index from one end. Undefined if the indexes do not help; then all matching records must be sorted.
 *
 * Measured with a million contacts: any page by last_name takes 4 to 10 ms; by first_name, which has no such index,
 * 1,100 ms.
 */
export async function sortedPage(tx: Tenant, listing: Listing): Promise<Row[] | undefined> {
  const { kind, among, conditions, keys, position, limit, offset } = listing
  const [key] = keys
  if (isMerged(listing)) return scan(tx, listing, undefined)
  if (keys.length > 1 || !key!.indexed || !key!.nullable) return undefined
  if (conditions.length === 0) return scan(tx, listing, undefined)
  if ((await planned(tx, kind, allOf([among, ...conditions]))) <= FEW) return undefined
  // The scan is bounded: a scan of the whole index visits the table in random order and takes many times as long as a
  // sort. The planner cannot choose, because it has no statistics on lower().
  const rows = await scan(tx, listing, (offset + limit) * SCANNED_PER_ROW)
  const isFull = rows.length === limit
  // Values beyond the bound would come before nulls.
  const isComplete = position?.values[0] === null || rows.every((row) => sortValues(listing, row)[0] !== null)
  return isFull && isComplete ? rows : undefined
}

/**
 * Whether a page is merged from the amounts of each currency, in the order of an index. With conditions no bound of the
 * scans would tell whether a page is complete.
 */
export const isMerged = ({ keys: [key, ...more], conditions, deleted }: Listing): boolean =>
  key!.ranges !== undefined && more.length === 0 && conditions.length === 0 && !deleted

/** Records in the order of an index. */
interface Range {
  /** SQL conditions. */
  where: string
  /** SQL: the column of the index, unless all are null. */
  column?: string
  /** SQL: the value of the sort key. */
  value: string
  /** The factor from the column to the value. */
  rate?: string
}

/** The ranges that together are the list, the one without a value last. */
function rangesOf({ sql, ranges }: SortKey): [...Range[], Range] {
  if (!ranges)
    return [
      { where: `${sql} is not null`, column: sql, value: sql },
      { where: `${sql} is null`, value: sql },
    ]
  const valued = ranges.map(({ field, currency, worth, rate }) => ({
    where: `${currency} and ${field} is not null`,
    column: field,
    value: worth,
    rate,
  }))
  return [...valued, { where: `${ranges[0]!.field} is null`, value: 'null::numeric' }]
}

/** `maxScanned`: row limit of the scan of each index. */
async function scan(tx: Tenant, listing: Listing, maxScanned: number | undefined): Promise<Row[]> {
  const { kind, among, conditions, position, limit, offset } = listing
  const key = listing.keys[0]!
  const { order } = key
  const from = position?.values[0]
  const part = (range: Range): Fragment => {
    const { where: has, column, value } = range
    // All nulls come after a value.
    const startsHere = position && (column === undefined) === (from === null)
    const start = allOf([
      among,
      { sql: has, bindings: [] },
      ...(startsHere
        ? [...reachOf(range, key, from!), rowsAfterLike(key, value, { value: from!, id: position.id })]
        : []),
    ])
    const where = allOf(conditions)
    const inOrder = `order by ${column === undefined ? '' : `${column} ${order}, `}id ${order}`
    const scanned =
      maxScanned === undefined
        ? { sql: `${searchView(kind)} where ${start.sql}`, bindings: start.bindings }
        : {
            sql: `(select * from ${searchView(kind)} where ${start.sql} ${inOrder} limit ?) scanned where ${where.sql}`,
            bindings: [...start.bindings, maxScanned, ...where.bindings],
          }
    return {
      sql: `(select id, ${value} as sort_key_1 from ${scanned.sql} ${inOrder} limit ?)`,
      bindings: [...scanned.bindings, offset + limit],
    }
  }
  const ranges = rangesOf(key)
  // Only nulls follow a null.
  const parts = (from === null ? ranges.slice(-1) : ranges).map(part)
  const inOrder = orderOf(listing, 'named')
  return queryRows<Row>(
    tx,
    `select ${columns(kind)}, sort_key_1 from (
       select id as found_id, sort_key_1 from (${parts.map(({ sql }) => sql).join(' union all ')}) parts
       order by ${inOrder} limit ? offset ?
     ) page join ${kind.entity} on id = found_id and ${among.sql} order by ${inOrder}`,
    [...parts.flatMap(({ bindings }) => bindings), limit, offset, ...among.bindings],
  )
}

/**
 * Where an index begins, of rows after a position whose value is a multiple of the index's column. A little before it,
 * since a quotient is rounded: `rowsAfterLike` decides.
 */
function reachOf({ column, rate }: Range, { order }: SortKey, value: string | null): Fragment[] {
  if (column === undefined || rate === undefined || value === null) return []
  const [reaches, away] = order === 'asc' ? ['>=', '-'] : ['<=', '+']
  const quotient = `?::numeric / ${rate}`
  return [
    {
      sql: `${column} ${reaches} ${quotient} ${away} (abs(${quotient}) + 1) / 1000000`,
      bindings: [value, value],
    },
  ]
}
