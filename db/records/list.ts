import { decodeCursor, encodeCursor, type Position, queryHash } from '../cursor.ts'
import type { Page } from '../page.ts'
import type { Tenant } from '../tenancy.ts'
import { present, shownColumns } from './columns.ts'
import { type Filter, sortable, toCondition } from './filters.ts'
import type { EntityName, Kind } from './kind.ts'
import { entities } from './kinds/index.ts'
import type { AgxRecord } from './schemas.ts'
import { searchPatterns } from './search-text.ts'

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

/** Up to so many matches are counted exactly even when an estimate was asked for. */
const EXACT_UP_TO = 10_000

interface Fragment {
  sql: string
  bindings: unknown[]
}

/**
 * A page of records. `related` narrows it to those that are linked with a record; it and `q` are always required,
 * `match` combines the filters only. Throws `invalid_request` for a cursor of another query.
 */
export async function listRecords(
  tx: Tenant,
  entity: EntityName,
  query: ListQuery,
  related?: { entity: EntityName; id: string },
): Promise<Page<AgxRecord>> {
  const kind = entities[entity]
  const { limit, offset, cursor, sort, order, count } = query
  const key = sortable(kind, sort)!
  const hash = queryHash([entity, related, sort, order, query.q, query.match, query.filters])
  const matching = conditions(tx, kind, query, related)
  const after = cursor ? [beyond(key.sql, key.type, order, decodeCursor(hash, cursor))] : []
  const where = all([...matching, ...after])
  const { rows } = await tx.trx.raw<{ rows: (Record<string, unknown> & { sort_key: string | null })[] }>(
    `select ${shownColumns(kind).join(', ')}, (${key.sql})::text as sort_key from ${entity} where ${where.sql}
     order by ${key.sql} ${order} nulls last, id ${order} limit ? offset ?`,
    [...where.bindings, limit + 1, offset] as never,
  )
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = rows.length > limit
  return {
    data: page.map((row) => present(kind, row)),
    limit,
    offset,
    has_more,
    next_cursor:
      has_more && last ? encodeCursor(hash, { value: last.sort_key, id: last.id as string }) : null,
    ...(await total(tx, entity, count, all(matching))),
  }
}

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
  const patterns = query.q === undefined ? [] : searchPatterns(query.q)
  if (patterns.length > 0)
    found.push({ sql: `id in (select search_${kind.entity}(?::text[]))`, bindings: [patterns] })
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
function beyond(key: string, type: string, order: 'asc' | 'desc', { value, id }: Position): Fragment {
  const than = order === 'asc' ? '>' : '<'
  if (value === null) return { sql: `(${key} is null and id ${than} ?)`, bindings: [id] }
  if (key === 'created_at')
    return { sql: `(created_at, id) ${than} (?::timestamptz, ?)`, bindings: [value, id] }
  return {
    sql: `(${key} ${than} ?::${type} or (${key} = ?::${type} and id ${than} ?) or ${key} is null)`,
    bindings: [value, value, id],
  }
}

const all = (fragments: Fragment[]): Fragment => ({
  sql: fragments.map(({ sql }) => sql).join(' and '),
  bindings: fragments.flatMap(({ bindings }) => bindings),
})

async function total(
  tx: Tenant,
  entity: EntityName,
  count: ListQuery['count'],
  where: Fragment,
): Promise<{ total: number | null; total_is_estimate: boolean }> {
  if (count === 'none') return { total: null, total_is_estimate: false }
  const counted = async (limit: string) => {
    const { rows } = await tx.trx.raw<{ rows: { total: number }[] }>(
      `select count(*) as total from (select from ${entity} where ${where.sql} ${limit}) matching`,
      where.bindings as never,
    )
    return rows[0]!.total
  }
  const exact = await counted(count === 'exact' ? '' : `limit ${EXACT_UP_TO + 1}`)
  if (count === 'exact' || exact <= EXACT_UP_TO) return { total: exact, total_is_estimate: false }
  const { rows } = await tx.trx.raw<{ rows: { 'QUERY PLAN': { Plan: { 'Plan Rows': number } }[] }[] }>(
    `explain (format json) select from ${entity} where ${where.sql}`,
    where.bindings as never,
  )
  return { total: Math.max(exact, rows[0]!['QUERY PLAN'][0]!.Plan['Plan Rows']), total_is_estimate: true }
}
