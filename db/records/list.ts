import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import { present } from '../model/records/columns.ts'
import type { Filter } from '../model/records/filters.ts'
import type { Kind, KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { searchPatterns } from '../model/records/search-text.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { readByType } from './custom-fields/query.ts'
import { condition, sortKey } from './filter-sql.ts'
import type { Fragment } from './fragment.ts'
import { withToday, zoneOfFilters } from './local-times.ts'
import { type Row, selectPage } from './pages.ts'
import { type Found, searchPage, wordConditions } from './search.ts'
import { sortedPage } from './sorted.ts'
import { total } from './total.ts'

export interface ListQuery {
  limit: number
  offset: number
  cursor?: string | undefined
  sort: string
  order: 'asc' | 'desc'
  q?: string | undefined
  match: 'all' | 'any'
  count: 'exact' | 'estimated' | 'none'
  filters: Filter[]
  /** Of dates, and of times without an offset. Default: that of the organization. */
  time_zone?: string | undefined
}

/**
 * A page of records. `related`: only records that are linked with this one. `match` combines only the filters, not `q`
 * or `related`. Throws `invalid_request` for a cursor of another query, `validation_error` for values, operators and
 * sorts that the type of a custom field does not support.
 */
export async function listRecords(
  tx: Tenant,
  kind: KindName,
  query: ListQuery,
  related?: { entity: KindName; id: string },
): Promise<Page<AgxRecord>> {
  const definition = kinds[kind]
  const { limit, offset, cursor, sort, order } = query
  const { filters, sortType } = await readByType(tx, kind, query)
  const key = sortKey(definition, sort, sortType)!
  // Includes the type of a custom field: a changed definition invalidates its cursors.
  const sorted = sortType ? [sort, sortType] : sort
  const zone = await zoneOfFilters(tx, definition, filters, query.time_zone)
  const hash = queryHash([
    kind,
    related,
    sorted,
    order,
    query.q,
    query.match,
    filters,
    ...(zone ? [zone] : []),
  ])
  const position = cursor === undefined ? undefined : decodeCursor(hash, cursor, key.isValue)
  const words = query.q === undefined ? [] : searchPatterns(query.q)
  const listing = {
    kind: definition,
    key,
    order,
    position,
    offset,
    limit: limit + 1,
    among: {
      sql: 'organization_id = ? and deleted_at is null',
      bindings: [tx.organizationId],
    },
    conditions: [
      ...conditions(
        tx,
        definition,
        { ...query, filters: withToday(definition, filters, zone), time_zone: zone },
        related,
      ),
      ...wordConditions(words),
    ],
  }
  const found: Found =
    words.length > 0
      ? await searchPage(tx, listing)
      : { rows: (await sortedPage(tx, listing)) ?? (await selectPage(tx, listing)) }
  const page = found.rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = found.rows.length > limit
  const isLastPage = !position && !has_more && (offset === 0 || last !== undefined)
  const matching = found.matching ?? (isLastPage ? offset + page.length : undefined)
  return {
    data: page.map((row) => present(definition, row)),
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? encodeCursor(hash, positionOf(last)) : null,
    ...(await total(tx, listing, query.count, { matching, selectivity: found.selectivity })),
  }
}

const positionOf = (row: Row) => ({
  value:
    row.sort_key === null
      ? null
      : row.sort_key instanceof Date
        ? row.sort_key.toISOString()
        : String(row.sort_key),
  id: row.id,
})

/** The condition of `related`, and the filters combined by `match`. */
function conditions(
  tx: Tenant,
  kind: Kind,
  query: ListQuery,
  related: { entity: KindName; id: string } | undefined,
): Fragment[] {
  const found: Fragment[] = []
  if (related)
    found.push({
      sql: `id in (
        select b_id from associations where organization_id = ? and a_id = ? and a_entity = ? and b_entity = ?
        union all
        select a_id from associations where organization_id = ? and b_id = ? and b_entity = ? and a_entity = ?)`,
      bindings: [1, 2].flatMap(() => [tx.organizationId, related.id, related.entity, kind.entity]),
    })
  if (query.filters.length > 0) {
    const filters = query.filters.map((filter) => condition(tx, kind, filter, query.time_zone))
    found.push({
      sql: `(${filters.map(({ sql }) => sql).join(query.match === 'any' ? ' or ' : ' and ')})`,
      bindings: filters.flatMap(({ bindings }) => bindings),
    })
  }
  return found
}
