import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import { present } from '../model/records/columns.ts'
import type { Rates } from '../model/records/exchange-rates.ts'
import { type Filter, knownHop } from '../model/records/filters.ts'
import type { Fragment } from '../model/records/fragment.ts'
import type { Kind, KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import { ofCaller } from '../model/records/of-caller.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import { searchPatterns } from '../model/records/search-text.ts'
import { type Order, sortsOf } from '../model/records/sorts.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { readByType } from './custom-fields/query.ts'
import { condition, type SortKey, sortKeys } from './filter-sql.ts'
import { withToday, zoneOfFilters } from './local-times.ts'
import { type ListPosition, type Row, selectPage, sortValues } from './pages.ts'
import { RESTORABLE_DAYS } from './restore.ts'
import { type Found, searchPage, wordConditions } from './search.ts'
import { MAX_SORTED, requireFewToSort } from './sort-bound.ts'
import { sortedPage } from './sorted.ts'
import { total } from './total.ts'
import { type Comparison, withRates } from './with-rates.ts'

export interface ListQuery {
  limit: number
  offset: number
  cursor?: string | undefined
  /** One field or several: see sorts.ts. */
  sort: string
  order: Order
  q?: string | undefined
  match: 'all' | 'any'
  count: 'exact' | 'estimated' | 'none'
  filters: Filter[]
  /** The deleted records that can be restored, instead of the others. */
  deleted?: true
  /** The zone of dates, and of times without an offset; default: that of the organization. */
  time_zone?: string | undefined
  /** The rates of a list that goes on in other transactions, as `comparisonOf` found them; null: amounts as they are. */
  rates?: Comparison | null | undefined
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
  maxSorted = MAX_SORTED,
): Promise<Page<AgxRecord>> {
  const definition = kinds[kind]
  const { limit, offset, cursor, sort, order } = query
  const { filters, sortTypes, rated, zone, found: selected } = await read(tx, kind, query)
  const keys = rated.sorts.flatMap((one, place) => sortKeys(definition, one, sortTypes[place]))
  // Includes the types of custom fields: a changed definition invalidates its cursors.
  const sorted = sortTypes.some((type) => type) ? [sort, sortTypes] : sort
  const hash = queryHash([
    kind,
    related,
    sorted,
    order,
    query.q,
    query.match,
    filters,
    ...(zone ? [zone] : []),
    ...(query.deleted ? ['deleted'] : []),
    ...ratesIn([...rated.filters, ...rated.sorts]),
  ])
  const position = cursor === undefined ? undefined : positionIn(keys, hash, cursor)
  const listing = {
    kind: definition,
    keys,
    position,
    offset,
    limit: limit + 1,
    among: { sql: query.deleted ? RESTORABLE : LIVE, bindings: [tx.organizationId] },
    deleted: query.deleted === true,
    conditions: [...(related ? [relatedTo(tx, kind, related)] : []), ...selected],
  }
  await requireFewToSort(tx, listing, { sort, max: maxSorted })
  // How many records words or related records select, the planner cannot know.
  const isGuess = wordsOf(query).length > 0 || filters.some(({ field }) => knownHop(definition, field))
  const found: Found = query.deleted
    ? // The other ways to a page read indexes of live records.
      { rows: await selectPage(tx, listing) }
    : isGuess
      ? await searchPage(tx, listing)
      : { rows: (await sortedPage(tx, listing)) ?? (await selectPage(tx, listing)) }
  const page = found.rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = found.rows.length > limit
  const isLastPage = !position && !has_more && (offset === 0 || last !== undefined)
  const matching = found.matching ?? (isLastPage ? offset + page.length : undefined)
  return {
    data: page.map((row) => shown(definition, row)),
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? encodeCursor(hash, positionOf(keys, last)) : null,
    ...(await total(tx, listing, query.count, { matching, selectivity: found.selectivity })),
  }
}

/**
 * The conditions of filters and `q` as SQL on a row of the kind's search view, for statements that select by them without
 * a page. Throws as `listRecords` does.
 */
export const selectionConditions = async (
  tx: Tenant,
  kind: KindName,
  query: Pick<ListQuery, 'sort' | 'order' | 'q' | 'match' | 'filters' | 'time_zone'>,
): Promise<Fragment[]> => (await read(tx, kind, query)).found

const wordsOf = ({ q }: Pick<ListQuery, 'q'>) => (q === undefined ? [] : searchPatterns(q))

/** Reads filters and sorts with what the organization defines now. `found`: the conditions of the filters and of `q`. */
async function read(tx: Tenant, kind: KindName, query: Omit<ListQuery, 'limit' | 'offset' | 'count'>) {
  const definition = kinds[kind]
  const { match, deleted } = query
  const { filters: typed, sortTypes } = await readByType(tx, kind, query)
  const filters = ofCaller(tx.actor, definition, typed)
  const ordered = { filters, sorts: sortsOf(query), match, deleted }
  const rated = await withRates(tx, definition, ordered, query.rates)
  const zone = await zoneOfFilters(tx, definition, filters, query.time_zone)
  const dated = withToday(definition, rated.filters, zone)
  const found = [
    ...filterConditions(tx, definition, { match, filters: dated, zone }),
    ...wordConditions(wordsOf(query)),
  ]
  return { filters, sortTypes, rated, zone, found }
}

/** For a cursor: with other rates, it would skip or repeat records. */
function ratesIn(compared: { rates?: Rates }[]): unknown[] {
  if (compared.every(({ rates }) => !rates)) return []
  return [compared.map(({ rates }) => rates && [rates.base, Object.entries(rates.rates).sort()])]
}

const LIVE = 'organization_id = ? and deleted_at is null'
/** Deleted, and neither merged into another record nor past its time. */
const RESTORABLE = `organization_id = ? and deleted_at > now() - interval '${RESTORABLE_DAYS} days' and not exists (
  select from merged_records as merged (merged_org, merged_id)
  where merged_org = organization_id and merged_id = id)`

const shown = (kind: Kind, row: Row): AgxRecord => ({
  ...present(kind, row),
  ...(row.deleted_at instanceof Date && { deleted_at: row.deleted_at.toISOString() }),
})

/** The position that a cursor names. Several sort values are one text, a JSON array. */
function positionIn(keys: SortKey[], hash: string, cursor: string): ListPosition {
  const [key, ...more] = keys
  if (more.length === 0) {
    const { value, id } = decodeCursor(hash, cursor, key!.isValue)
    return { values: [value], id }
  }
  const { value, id } = decodeCursor(hash, cursor, (text) => parseValues(keys, text) !== undefined)
  return { values: parseValues(keys, value ?? '') ?? keys.map(() => null), id }
}

function parseValues(keys: SortKey[], text: string): (string | null)[] | undefined {
  try {
    const values: unknown = JSON.parse(text)
    if (!Array.isArray(values) || values.length !== keys.length) return undefined
    const isPossible = (value: unknown, key: SortKey) =>
      value === null ? key.nullable : typeof value === 'string' && key.isValue(value)
    return values.every((value, place) => isPossible(value, keys[place]!)) ? values : undefined
  } catch {
    return undefined
  }
}

function positionOf(keys: SortKey[], row: Row) {
  const values = sortValues({ keys }, row).map((value) =>
    value === null ? null : value instanceof Date ? value.toISOString() : String(value),
  )
  return { value: values.length === 1 ? values[0]! : JSON.stringify(values), id: row.id }
}

/** The condition of `related`. */
const relatedTo = (
  tx: Tenant,
  kind: KindName,
  { entity, id }: { entity: KindName; id: string },
): Fragment => ({
  sql: `id in (
    select b_id from associations where organization_id = ? and a_id = ? and a_entity = ? and b_entity = ?
    union all
    select a_id from associations where organization_id = ? and b_id = ? and b_entity = ? and a_entity = ?)`,
  bindings: [1, 2].flatMap(() => [tx.organizationId, id, entity, kind]),
})

/** The filters, combined by `match`. */
function filterConditions(
  tx: Tenant,
  kind: Kind,
  { match, filters, zone }: Pick<ListQuery, 'match' | 'filters'> & { zone: string | undefined },
): Fragment[] {
  if (filters.length === 0) return []
  const each = filters.map((filter) => condition(tx, kind, filter, zone))
  return [
    {
      sql: `(${each.map(({ sql }) => sql).join(match === 'any' ? ' or ' : ' and ')})`,
      bindings: each.flatMap(({ bindings }) => bindings),
    },
  ]
}
