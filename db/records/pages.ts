import type { Position } from '../model/lists/cursor.ts'
import { shownColumns } from '../model/records/columns.ts'
import type { Kind } from '../model/records/kind.ts'
import { PLANNED_ANEW } from '../postgres/prepared.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { SortKey } from './filter-sql.ts'
import type { Fragment } from './fragment.ts'

/** The query of a page: conditions, order and start. */
export interface Listing {
  kind: Kind
  /** The base condition: records of the organization that are not deleted. */
  among: Fragment
  /** Further conditions. */
  conditions: Fragment[]
  key: SortKey
  order: 'asc' | 'desc'
  position: Position | undefined
  offset: number
  /** The page size plus one: the extra row shows whether there is a next page. */
  limit: number
}

export type Row = Record<string, unknown> & { id: string; sort_key: unknown }

/** Selects the page with the plan that PostgreSQL chooses. */
export async function selectPage(
  tx: Tenant,
  listing: Listing,
  table: string = listing.kind.entity,
): Promise<Row[]> {
  const { kind, among, conditions, key, position, limit, offset } = listing
  const where = allOf([among, ...conditions, ...(position ? [rowsAfter(listing, key.sql, position)] : [])])
  return queryRows<Row>(
    tx,
    `select ${columns(kind)}, ${key.sql} as sort_key from ${table} where ${where.sql}
     order by ${orderOf(listing, key.sql)} limit ? offset ?`,
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
  const { kind, among, conditions, key, position, limit, offset } = listing
  const from = allOf(position ? [among, rowsAfter(listing, key.sql, position)] : [among])
  const where = allOf(conditions)
  const order = orderOf(listing, key.sql)
  return queryRows<Row & { scanned: number }>(
    tx,
    `select ${columns(kind)}, ${key.sql} as sort_key, scanned from (
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
  const { kind, among, conditions, key, position, limit, offset } = listing
  const where = allOf([among, ...conditions])
  const from = position ? rowsAfter(listing, 'sort_key', position) : { sql: 'true', bindings: [] }
  const order = orderOf(listing, 'sort_key')
  const rows = await queryRows<Row & { matching: number }>(
    tx,
    `with found as materialized (
       select id, ${key.sql} as sort_key from ${searchView(kind)} where ${where.sql} limit ?
     ),
     page as (select id as found_id, sort_key from found where ${from.sql} order by ${order} limit ? offset ?)
     select matching, shown.* from (select count(*) as matching from found) counted left join (
       select ${columns(kind)}, sort_key from page join ${kind.entity} on id = found_id and ${among.sql}
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

/** Nulls last in both directions, then by id. */
export const orderOf = ({ key, order }: Listing, sql: string): string =>
  `${sql} ${order} ${key.nullable ? 'nulls last' : ''}, id ${order}`

/** The rows after a cursor's position (keyset pagination). Rows without a value come last. */
function rowsAfter(listing: Listing, sql: string, position: Position): Fragment {
  const { key } = listing
  const after = rowsAfterLike(listing, sql, position)
  if (position.value === null) return { ...after, sql: `(${sql} is null and ${after.sql})` }
  return key.nullable ? { ...after, sql: `(${after.sql} or ${sql} is null)` } : after
}

/** The rows after a cursor's position: among the rows with a value if it has one, else among those without. */
export function rowsAfterLike({ key, order }: Listing, sql: string, { value, id }: Position): Fragment {
  const than = order === 'asc' ? '>' : '<'
  if (value === null) return { sql: `id ${than} ?`, bindings: [id] }
  return { sql: `(${sql}, id) ${than} (?::${key.type}, ?)`, bindings: [value, id] }
}
