import type { Knex } from 'knex'
import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { type Count, totalOfRows } from './total.ts'

/** The requested page. */
export interface IdPage {
  limit: number
  offset: number
  /** `next_cursor` of the previous page. */
  cursor?: string | undefined
}

export interface IdList {
  /** Everything that determines the rows: a cursor is valid for this list only. */
  of: unknown
  /** By id, which is in order of creation. Default: newest first. */
  order?: 'asc' | 'desc'
  /** Default: estimated, which is exact up to 10,000. */
  count?: Count
}

/**
 * A page of a list, ordered by id.
 * @param rows the filtered query with its columns, without an order.
 * Throws `invalid_request` for a cursor of another list.
 */
export async function pageById<T extends { id: string }>(
  { trx }: Pick<Tenant, 'trx'>,
  rows: Knex.QueryBuilder,
  { limit, offset, cursor }: IdPage,
  { of, order = 'desc', count = 'estimated' }: IdList,
): Promise<Page<T>> {
  const hash = queryHash([of, order])
  const query = rows
    .clone()
    .orderBy('id', order)
    .limit(limit + 1)
    .offset(offset)
  if (cursor !== undefined)
    query.where('id', order === 'asc' ? '>' : '<', decodeCursor(hash, cursor, () => false).id)
  const found: T[] = await query
  const data = found.slice(0, limit)
  const last = data.at(-1)
  const has_more = found.length > limit
  const isLastPage = cursor === undefined && !has_more && (offset === 0 || last !== undefined)
  const total =
    isLastPage && count !== 'none'
      ? { total: offset + data.length, total_is_estimate: false }
      : await totalOfRows(trx, rows, count)
  return {
    data,
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? encodeCursor(hash, { value: null, id: last.id }) : null,
    ...total,
  }
}
