import type { Fragment } from '../model/records/fragment.ts'
import type { Tenant } from '../postgres/tenancy.ts'
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

/** `maxScanned`: row limit of the scan of each index. */
async function scan(tx: Tenant, listing: Listing, maxScanned: number | undefined): Promise<Row[]> {
  const { kind, among, conditions, position, limit, offset } = listing
  const key = listing.keys[0]!
  const { order } = key
  const value = position?.values[0]
  const part = (nulls: boolean): Fragment => {
    // All nulls come after a value.
    const startsHere = position && nulls === (value === null)
    const has = { sql: `${key.sql} is ${nulls ? '' : 'not '}null`, bindings: [] }
    const from = allOf([
      among,
      has,
      ...(startsHere ? [rowsAfterLike(key, key.sql, { value: value!, id: position.id })] : []),
    ])
    const where = allOf(conditions)
    const inOrder = `order by ${nulls ? '' : `${key.sql} ${order}, `}id ${order}`
    const scanned =
      maxScanned === undefined
        ? { sql: `${searchView(kind)} where ${from.sql}`, bindings: from.bindings }
        : {
            sql: `(select * from ${searchView(kind)} where ${from.sql} ${inOrder} limit ?) scanned where ${where.sql}`,
            bindings: [...from.bindings, maxScanned, ...where.bindings],
          }
    return {
      sql: `(select id, ${key.sql} as sort_key_1 from ${scanned.sql} ${inOrder} limit ?)`,
      bindings: [...scanned.bindings, offset + limit],
    }
  }
  // Only nulls follow a null.
  const parts = value === null ? [part(true)] : [part(false), part(true)]
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
