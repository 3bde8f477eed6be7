import { decodeCursor, encodeCursor, type Position, queryHash } from '../cursor.ts'
import type { Page } from '../page.ts'
import type { Tenant } from '../tenancy.ts'
import { present, shownColumns } from './columns.ts'
import { readByType } from './custom-fields/query.ts'
import { type Filter, type Fragment, type SortKey, sortable, toCondition } from './filters.ts'
import type { EntityName, Kind } from './kind.ts'
import { entities } from './kinds/index.ts'
import type { AgxRecord } from './schemas.ts'
import { search } from './search.ts'
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
}

/**
 * A page of records. `related` narrows it to those that are linked with a record; it and `q` are always required,
 * `match` combines the filters only. Throws `invalid_request` for a cursor of another query, `validation_error` for what
 * a custom field's type does not have.
 */
export async function listRecords(
  tx: Tenant,
  entity: EntityName,
  query: ListQuery,
  related?: { entity: EntityName; id: string },
): Promise<Page<AgxRecord>> {
  const kind = entities[entity]
  const { limit, offset, cursor, sort, order } = query
  const { filters, sortType } = await readByType(tx, entity, query)
  const key = sortable(kind, sort, sortType)!
  // With the types of custom fields: a cursor from before a definition changed is of another query.
  const sorted = sortType ? [sort, sortType] : sort
  const hash = queryHash([entity, related, sorted, order, query.q, query.match, filters])
  const position = cursor === undefined ? undefined : decodeCursor(hash, cursor, key.isValue)
  const found = query.q === undefined ? undefined : await search(tx, kind, query.q)
  const matching = conditions(tx, kind, { ...query, filters }, related)
  if (found) matching.push(found.condition)
  const where = all(position ? [...matching, beyond(key, order, position)] : matching)
  const { rows } = await tx.trx.raw<{ rows: (Record<string, unknown> & { sort_key: unknown })[] }>(
    `select ${shownColumns(kind).join(', ')}, ${key.sql} as sort_key from ${entity} where ${where.sql}
     order by ${key.sql} ${order} ${key.nullable ? 'nulls last' : ''}, id ${order} limit ? offset ?`,
    [...where.bindings, limit + 1, offset] as never,
  )
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = rows.length > limit
  const known = position || has_more || (offset > 0 && !last) ? undefined : offset + page.length
  const many = found?.common && query.filters.length === 0 && !related
  return {
    data: page.map((row) => present(kind, row)),
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? encodeCursor(hash, positionOf(last)) : null,
    ...(await total(tx, entity, query.count, all(matching), { known, many })),
  }
}

const positionOf = (row: Record<string, unknown> & { sort_key: unknown }) => ({
  value:
    row.sort_key === null
      ? null
      : row.sort_key instanceof Date
        ? row.sort_key.toISOString()
        : String(row.sort_key),
  id: row.id as string,
})

function conditions(
  tx: Tenant,
  kind: Kind,
  query: ListQuery,
  related: { entity: EntityName; id: string } | undefined,
): Fragment[] {
  const found: Fragment[] = [
    { sql: 'organization_id = ?', bindings: [tx.organizationId] },
    { sql: 'deleted_at is null', bindings: [] },
  ]
  if (related)
    found.push({
      sql: `id in (
        select b_id from associations where organization_id = ? and a_id = ? and a_entity = ? and b_entity = ?
        union all
        select a_id from associations where organization_id = ? and b_id = ? and b_entity = ? and a_entity = ?)`,
      bindings: [1, 2].flatMap(() => [tx.organizationId, related.id, related.entity, kind.entity]),
    })
  if (query.filters.length > 0) {
    const filters = query.filters.map((filter) => toCondition(kind, filter))
    found.push({
      sql: `(${filters.map(({ sql }) => sql).join(query.match === 'any' ? ' or ' : ' and ')})`,
      bindings: filters.flatMap(({ bindings }) => bindings),
    })
  }
  return found
}

/** The rows behind a place in the order; nulls are last in both directions. */
function beyond(key: SortKey, order: 'asc' | 'desc', { value, id }: Position): Fragment {
  const than = order === 'asc' ? '>' : '<'
  if (value === null) return { sql: `(${key.sql} is null and id ${than} ?)`, bindings: [id] }
  const after = { sql: `(${key.sql}, id) ${than} (?::${key.type}, ?)`, bindings: [value, id] }
  return key.nullable ? { ...after, sql: `(${after.sql} or ${key.sql} is null)` } : after
}

const all = (fragments: Fragment[]): Fragment => ({
  sql: fragments.map(({ sql }) => sql).join(' and '),
  bindings: fragments.flatMap(({ bindings }) => bindings),
})
