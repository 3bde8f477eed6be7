import type { Position } from '../lists/cursor.ts'
import { PLANNED_ANEW } from '../postgres/dialect.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { Fragment, SortKey } from './filter-sql.ts'
import { shownColumns } from './model/columns.ts'
import type { Kind } from './model/kind.ts'

/** A page that is looked for: which records, in which order, from where on. */
export interface Listing {
  kind: Kind
  /** Those of the organization that are not deleted. */
  among: Fragment
  /** What they must meet besides. */
  conditions: Fragment[]
  key: SortKey
  order: 'asc' | 'desc'
  position: Position | undefined
  offset: number
  /** Of rows: one more than a page, to see whether there is another. */
  limit: number
}

export type Row = Record<string, unknown> & { id: string; sort_key: unknown }

/** The page as PostgreSQL finds it best. */
export async function selectPage(
  tx: Tenant,
  listing: Listing,
  table: string = listing.kind.entity,
): Promise<Row[]> {
  const { kind, among, conditions, key, position, limit, offset } = listing
  const where = all([among, ...conditions, ...(position ? [beyond(listing, key.sql, position)] : [])])
  return ask<Row>(
    tx,
    `select ${columns(kind)}, ${key.sql} as sort_key from ${table} where ${where.sql}
     order by ${orderOf(listing, key.sql)} limit ? offset ?`,
    [...where.bindings, limit, offset],
  )
}

/**
 * The page, looked for among the next so many records in the order: costs the same however many there are. Short where
 * that was not enough. `walked` of a row: how many records there were up to it.
 */
export async function walkToPage(
  tx: Tenant,
  listing: Listing,
  atMost: number,
): Promise<(Row & { walked: number })[]> {
  const { kind, among, conditions, key, position, limit, offset } = listing
  const from = all(position ? [among, beyond(listing, key.sql, position)] : [among])
  const where = all(conditions)
  const order = orderOf(listing, key.sql)
  return ask<Row & { walked: number }>(
    tx,
    `select ${columns(kind)}, ${key.sql} as sort_key, walked from (
       select *, row_number() over (order by ${order}) as walked from ${kind.entity} where ${from.sql}
       order by ${order} limit ?
     ) nearest where ${where.sql} order by ${order} limit ? offset ?`,
    [...from.bindings, atMost, ...where.bindings, limit, offset],
  )
}

/**
 * The page, out of at most so many records that are taken from an index and then sorted, and how many those are. Where
 * there are as many as that it is none: others may come before them.
 */
export async function gatherPage(
  tx: Tenant,
  listing: Listing,
  atMost: number,
): Promise<{ matching: number; rows: Row[] }> {
  const { kind, among, conditions, key, position, limit, offset } = listing
  const where = all([among, ...conditions])
  const from = position ? beyond(listing, 'sort_key', position) : { sql: 'true', bindings: [] }
  const order = orderOf(listing, 'sort_key')
  const rows = await ask<Row & { matching: number }>(
    tx,
    `with found as materialized (
       select id, ${key.sql} as sort_key from ${searched(kind)} where ${where.sql} limit ?
     ),
     page as (select id as found_id, sort_key from found where ${from.sql} order by ${order} limit ? offset ?)
     select matching, shown.* from (select count(*) as matching from found) counted left join (
       select ${columns(kind)}, sort_key from page join ${kind.entity} on id = found_id and ${among.sql}
     ) shown on true order by ${order}`,
    [...where.bindings, atMost, ...from.bindings, limit, offset, ...among.bindings],
  )
  return { matching: rows[0]!.matching, rows: rows.filter(({ id }) => id !== null) }
}

/** Rows of a statement about many records, which is planned for the values that it has. */
export async function ask<T>(tx: Tenant, sql: string, bindings: unknown[]): Promise<T[]> {
  const { rows } = await tx.trx.raw<{ rows: T[] }>(sql, bindings as never).options(PLANNED_ANEW)
  return rows
}

/** The kind's records for whom an index of text may serve: see migration 0011. */
export const searched = (kind: Kind): string => `searched_${kind.entity}`

export const all = (fragments: Fragment[]): Fragment => ({
  sql: fragments.map(({ sql }) => sql).join(' and '),
  bindings: fragments.flatMap(({ bindings }) => bindings),
})

const columns = (kind: Kind): string => shownColumns(kind).join(', ')

/** Nulls are last in both directions, ties are broken by id. */
const orderOf = ({ key, order }: Listing, sql: string): string =>
  `${sql} ${order} ${key.nullable ? 'nulls last' : ''}, id ${order}`

/** The rows behind a place in the order. */
function beyond({ key, order }: Listing, sql: string, { value, id }: Position): Fragment {
  const than = order === 'asc' ? '>' : '<'
  if (value === null) return { sql: `(${sql} is null and id ${than} ?)`, bindings: [id] }
  const after = { sql: `(${sql}, id) ${than} (?::${key.type}, ?)`, bindings: [value, id] }
  return key.nullable ? { ...after, sql: `(${after.sql} or ${sql} is null)` } : after
}
