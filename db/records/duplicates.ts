import { NIL } from 'uuid'
import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import { present, shownColumns } from '../model/records/columns.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { AgxRecord } from '../model/records/schemas.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/**
 * What records can have in common: the indexed columns that are read in order, and the value that must be equal; for
 * `alternates` also the alternate keys of the field.
 */
interface Match {
  columns: string[]
  /** Default: the column. */
  value?: string
  alternates?: true
}

const MATCHES = {
  contacts: {
    email: { columns: ['email_lower'], alternates: true },
    phone: { columns: ['phone', 'mobile_phone'], alternates: true },
    name: {
      columns: ['last_name_lower'],
      value: "last_name_lower || coalesce(', ' || lower(first_name), '')",
    },
  },
  companies: {
    domain: { columns: ['domain'], alternates: true },
    phone: { columns: ['phone'] },
    name: { columns: ['name_lower'] },
  },
} as const satisfies Record<string, Record<string, Match>>

/** The kinds whose duplicates can be listed, each with what it is compared by; the first is the default. */
export const DUPLICATES_BY = {
  contacts: ['email', 'phone', 'name'],
  companies: ['domain', 'phone', 'name'],
} as const
export type DuplicateKind = keyof typeof DUPLICATES_BY

/** Records with an equal value. */
export interface DuplicateGroup {
  by: string
  value: string
  count: number
  /** The oldest first, at most `MAX_SHOWN`. */
  records: AgxRecord[]
}

/** Records of a group that are shown. */
export const MAX_SHOWN = 10
/** Records that one page compares: it may have fewer groups than its limit, although there are more. */
const COMPARED_AT_ONCE = 20_000

interface Group {
  value: string
  position: string
  count: number
  ids: string[]
}

/**
 * Groups of records that may be duplicates, by value. Reads an index in order, at most COMPARED_AT_ONCE entries, so
 * that the time of a page does not depend on the number of records. Throws `invalid_request` for a cursor of another
 * list.
 */
export async function listDuplicates(
  tx: Tenant,
  kind: DuplicateKind,
  by: string,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
  compared = COMPARED_AT_ONCE,
): Promise<Page<DuplicateGroup>> {
  const match = (MATCHES[kind] as Record<string, Match>)[by]!
  const hash = queryHash(['duplicates', kind, by])
  const after = cursor === undefined ? null : decodeCursor(hash, cursor, () => true).value
  const { rows } = await tx.trx.raw<{
    rows: { groups: Group[] | null; last: string | null; read: number }[]
  }>(
    `with compared as materialized (
       select * from (${sourcesOf(kind, by, match, after !== null).join(' union all ')}) sources
       order by position limit :compared
     ), whole as (
       -- A record with a value in two columns counts once.
       select *, max(position) over () as last, min(position) over () as first,
         (select count(*) from compared) as read
       from (select distinct id, created_at, position, value from compared) one
     ), groups as (
       select position, value, count(*)::integer as count, (array_agg(id order by created_at, id))[1:${MAX_SHOWN}] as ids
       from whole
       -- The last value may go on behind the compared ones: the next page begins with it.
       where read < :compared or position <> last or first = last
       group by position, value having count(*) > 1 order by position, value
     )
     select (select json_agg(g) from (select * from groups limit :limit + 1) g) as groups,
       (select max(position) from compared where (select count(*) from compared) < :compared
          or position <> (select max(position) from compared)
          or (select min(position) from compared) = (select max(position) from compared)) as last,
       (select count(*)::integer from compared) as read`,
    { organization: tx.organizationId, limit, compared, ...(after !== null && { after }) },
  )
  const { last, read } = rows[0]!
  const found = rows[0]!.groups ?? []
  const shown = wholePositions(found, limit)
  const isCut = shown.length < found.length
  const next = isCut ? shown.at(-1)!.position : read === compared ? last : null
  const records = await recordsOf(
    tx,
    kind,
    shown.flatMap(({ ids }) => ids),
  )
  return {
    data: shown.map(({ value, count, ids }) => ({
      by,
      value,
      count,
      records: ids.flatMap((id) => records.get(id) ?? []),
    })),
    limit,
    offset: 0,
    has_more: next !== null,
    next_cursor: next === null ? null : encodeCursor(hash, { value: next, id: NIL }),
    total: null,
    total_is_estimate: false,
  }
}

/** SQL of each source of values, in their order. */
function sourcesOf(kind: DuplicateKind, by: string, match: Match, isLater: boolean): string[] {
  const order = 'order by position limit :compared'
  const own = match.columns.map(
    (column) =>
      `(select id, created_at, ${column} as position, ${match.value ?? column} as value from ${kind}
        where organization_id = :organization and deleted_at is null and ${column} is not null
          ${isLater ? `and ${column} > :after` : ''} ${order})`,
  )
  if (!match.alternates) return own
  return [
    ...own,
    `(select r.id, r.created_at, a.key as position, a.key as value from alternate_keys a
      join ${kind} r on r.organization_id = a.organization_id and r.id = a.record_id
      where a.organization_id = :organization and a.entity = '${kind}' and a.field = '${by}' and r.deleted_at is null
        ${isLater ? 'and a.key > :after' : ''} ${order})`,
  ]
}

/** The first groups, without a position that has more groups than are shown; at least those of one position. */
function wholePositions(groups: Group[], limit: number): Group[] {
  if (groups.length <= limit) return groups
  const cut = groups[limit]!.position
  const before = groups.filter(({ position }) => position !== cut)
  return before.length > 0 ? before : groups.slice(0, limit)
}

async function recordsOf(tx: Tenant, kind: DuplicateKind, ids: string[]): Promise<Map<string, AgxRecord>> {
  const rows: Record<string, unknown>[] = await tx
    .trx(kind)
    .where({ organization_id: tx.organizationId })
    .whereIn('id', ids)
    .whereNull('deleted_at')
    .select(shownColumns(kinds[kind]))
  return new Map(rows.map((row) => [row.id as string, present(kinds[kind], row)]))
}
