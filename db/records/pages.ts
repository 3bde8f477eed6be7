import type { Position } from '../model/lists/cursor.ts'
import { shownColumns } from '../model/records/columns.ts'
import type { Fragment } from '../model/records/fragment.ts'
import type { Kind } from '../model/records/kind.ts'
import type { Order } from '../model/records/sorts.ts'
import { PLANNED_ANEW } from '../postgres/prepared.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { SortKey } from './filter-sql.ts'

/** The query of a page: conditions, order and start. */
export interface Listing {
  kind: Kind
  /** The base condition: records of the organization that are not deleted, or those that are. */
  among: Fragment
  deleted: boolean
  /** Further conditions. */
  conditions: Fragment[]
  /** The sort; ties break on the id. */
  keys: SortKey[]
  position: ListPosition | undefined
  offset: number
  /** The page size plus one: the extra row shows whether there is a next page. */
  limit: number
}

/** The sort values and the id of the last row of the previous page. */
export interface ListPosition {
  values: (string | null)[]
  id: string
}

export type Row = Record<string, unknown> & { id: string }

/** The sort values of a row. */
export const sortValues = ({ keys }: Pick<Listing, 'keys'>, row: Row): unknown[] =>
  keys.map((_, place) => row[`sort_key_${place + 1}`])

/** Selects the page with the plan that PostgreSQL chooses. */
export async function selectPage(
  tx: Tenant,
  listing: Listing,
  table: string = listing.kind.entity,
): Promise<Row[]> {
  const { kind, among, conditions, position, limit, offset } = listing
  const where = allOf([among, ...conditions, ...(position ? [rowsAfter(listing, 'computed', position)] : [])])
  return queryRows<Row>(
    tx,
    `select ${columns(kind)}, ${listing.deleted ? 'deleted_at, ' : ''}${selectedKeys(listing)} from ${table} where ${where.sql}
     order by ${orderOf(listing, 'computed')} limit ? offset ?`,
    [...where.bindings, limit, offset],
  )
}

/**
 * Selects the page by a scan of at most `maxScanned` records in the order of the list, so that its cost does not depend
 * on the number of records. The page is short if they contain too few matches. `scanned`: the number of records up to a
 * row.
 */
export async function scanPage(
  tx: Tenant,
  listing: Listing,
  maxScanned: number,
): Promise<(Row & { scanned: number })[]> {
  const { kind, among, conditions, position, limit, offset } = listing
  const from = allOf(position ? [among, rowsAfter(listing, 'computed', position)] : [among])
  const where = allOf(conditions)
  const order = orderOf(listing, 'computed')
  return queryRows<Row & { scanned: number }>(
    tx,
    `select ${columns(kind)}, ${selectedKeys(listing)}, scanned from (
       select *, row_number() over (order by ${order}) as scanned from ${kind.entity} where ${from.sql}
       order by ${order} limit ?
     ) next_records where ${where.sql} order by ${order} limit ? offset ?`,
    [...from.bindings, maxScanned, ...where.bindings, limit, offset],
  )
}

/**
 * Selects the page by sorting at most `maxMatching` matches, which a text index finds. `matching`: the number of
 * matches. If it reaches `maxMatching`, the page is invalid, because other matches may sort before it.
 */
export async function gatherPage(
  tx: Tenant,
  listing: Listing,
  maxMatching: number,
): Promise<{ matching: number; rows: Row[] }> {
  const { kind, among, conditions, position, limit, offset } = listing
  const where = allOf([among, ...conditions])
  const from = position ? rowsAfter(listing, 'named', position) : { sql: 'true', bindings: [] }
  const order = orderOf(listing, 'named')
  const names = keyNames(listing).join(', ')
  const rows = await queryRows<Row & { matching: number }>(
    tx,
    `with found as materialized (
       select id, ${selectedKeys(listing)} from ${searchView(kind)} where ${where.sql} limit ?
     ),
     page as (select id as found_id, ${names} from found where ${from.sql} order by ${order} limit ? offset ?)
     select matching, shown.* from (select count(*) as matching from found) counted left join (
       select ${columns(kind)}, ${names} from page join ${kind.entity} on id = found_id and ${among.sql}
     ) shown on true order by ${order}`,
    [...where.bindings, maxMatching, ...from.bindings, limit, offset, ...among.bindings],
  )
  return { matching: rows[0]!.matching, rows: rows.filter(({ id }) => id !== null) }
}

/** The rows of a list query, planned for its actual values (no generic plan). */
export async function queryRows<T>(tx: Tenant, sql: string, bindings: unknown[]): Promise<T[]> {
  const { rows } = await tx.trx.raw<{ rows: T[] }>(sql, bindings as never).options(PLANNED_ANEW)
  return rows
}

/** The view of a kind's records that may use a text index: see db/migrations/search-view.ts. */
export const searchView = (kind: Kind): string => `searched_${kind.entity}`

export const allOf = (fragments: Fragment[]): Fragment => ({
  sql: fragments.map(({ sql }) => sql).join(' and '),
  bindings: fragments.flatMap(({ bindings }) => bindings),
})

export const columns = (kind: Kind): string => shownColumns(kind).join(', ')

/** The columns of the sort keys in a page's statement: `sort_key_1`, `sort_key_2`. */
const keyNames = ({ keys }: Listing): string[] => keys.map((_, place) => `sort_key_${place + 1}`)

const selectedKeys = ({ keys }: Listing): string =>
  keys.map(({ sql }, place) => `${sql} as sort_key_${place + 1}`).join(', ')

/** Nulls last in both directions, then by id. `named`: by the columns of the keys. */
export function orderOf(listing: Listing, named: 'named' | 'computed'): string {
  const { keys } = listing
  const names = keyNames(listing)
  const each = keys.map(
    ({ sql, order, nullable }, place) =>
      `${named === 'named' ? names[place] : sql} ${order}${nullable ? ' nulls last' : ''}`,
  )
  return [...each, `id ${keys.at(-1)!.order}`].join(', ')
}

/** The rows after a cursor's position (keyset pagination). Rows without a value come last. */
function rowsAfter(listing: Listing, named: 'named' | 'computed', position: ListPosition): Fragment {
  const names = keyNames(listing)
  const sqlOf = (place: number) => (named === 'named' ? names[place]! : listing.keys[place]!.sql)
  const [first, ...more] = listing.keys
  const [value] = position.values
  if (more.length === 0) {
    const after = rowsAfterLike(first!, sqlOf(0), { value: value!, id: position.id })
    if (value === null) return { ...after, sql: `(${sqlOf(0)} is null and ${after.sql})` }
    return first!.nullable ? { ...after, sql: `(${after.sql} or ${sqlOf(0)} is null)` } : after
  }
  // Equal in the first keys and after the position in the next one, for each; or equal in all, with a later id.
  const equal = listing.keys.map(({ type }, place): Fragment => {
    const given = position.values[place]!
    return given === null
      ? { sql: `${sqlOf(place)} is null`, bindings: [] }
      : { sql: `${sqlOf(place)} = ?::${type}`, bindings: [given] }
  })
  const later = listing.keys.map(({ type, order, nullable }, place): Fragment | undefined => {
    const given = position.values[place]!
    // Nothing comes after null.
    if (given === null) return undefined
    const after = `${sqlOf(place)} ${beyond(order)} ?::${type}`
    return { sql: nullable ? `(${after} or ${sqlOf(place)} is null)` : after, bindings: [given] }
  })
  const last: Fragment = { sql: `id ${beyond(listing.keys.at(-1)!.order)} ?`, bindings: [position.id] }
  const ways = [...later, last].flatMap((one, place) => (one ? [allOf([...equal.slice(0, place), one])] : []))
  const after = {
    sql: `(${ways.map(({ sql }) => `(${sql})`).join(' or ')})`,
    bindings: ways.flatMap(({ bindings }) => bindings),
  }
  if (first!.nullable) return after
  // Implied, so that an index in the order of the first key serves.
  return allOf([{ sql: `${sqlOf(0)} ${beyond(first!.order)}= ?::${first!.type}`, bindings: [value!] }, after])
}

const beyond = (order: Order) => (order === 'asc' ? '>' : '<')

/** The rows after a position by one key: among the rows with a value if it has one, else among those without. */
export function rowsAfterLike({ type, order }: SortKey, sql: string, { value, id }: Position): Fragment {
  if (value === null) return { sql: `id ${beyond(order)} ?`, bindings: [id] }
  return { sql: `(${sql}, id) ${beyond(order)} (?::${type}, ?)`, bindings: [value, id] }
}
