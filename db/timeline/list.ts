import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'

import { type KindName, kindNames, kinds } from '../model/records/kinds/index.ts'
import type { TimelineType } from '../model/records/timeline.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { exists } from '../records/links.ts'
import { recordNotFound } from '../records/merged.ts'

/** Where an entry of a timeline is found: an associated record, a change by its version, a run or a delivery. */
export interface TimelinePlace {
  type: TimelineType
  id: string
  /** The version that a change made; 0 for other entries. */
  version: number
  at: Date
}

export interface TimelineQuery {
  types: readonly TimelineType[]
  limit: number
  cursor?: string | undefined
}

/**
 * What happened around a record, newest first: the records that are associated with it, by the time of their creation
 * (activities: when they took place), its changes, the runs that its events started, and the deliveries of its events.
 * Those of duplicates that were merged into it count as its own. Not counted, since that would read all of them.
 * Throws `not_found`; `invalid_request` for a cursor of another timeline.
 */
export async function listTimeline(
  tx: Tenant,
  kind: KindName,
  id: string,
  { types, limit, cursor }: TimelineQuery,
): Promise<{ places: TimelinePlace[]; has_more: boolean; next_cursor: string | null }> {
  if (!(await exists(tx, { entity: kind, id }))) throw await recordNotFound(tx, kinds[kind], id)
  const hash = queryHash(['timeline', kind, id, types])
  const position = cursor ? decodeCursor(hash, cursor, (text) => POSITION.test(text)) : undefined
  const [at, type, version] = position?.value?.split(' ') ?? []
  const before = position && { at, type, version, id: position.id }
  const { rows } = await tx.trx.raw<{ rows: TimelinePlace[] }>(
    `with own as materialized (
       select :id::uuid as id union all
       select id from merged_records where organization_id = :organization and merged_into = :id)
     select * from (${types.map((one) => `(${pageOf(one, before?.type)})`).join(' union all ')}) as entries
     order by at desc, type desc, id desc, version desc limit :limit`,
    { ...before, organization: tx.organizationId, id, cursorId: before?.id, limit: limit + 1, kind } as never,
  )
  const places = rows.slice(0, limit)
  const last = places.at(-1)
  const has_more = rows.length > limit
  return { places, has_more, next_cursor: has_more && last ? encodeCursor(hash, positionOf(last)) : null }
}

/** A cursor's position: time, type and version of an entry. */
const POSITION = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [a-z]+ \d{1,9}$/
const positionOf = ({ at, type, version, id }: TimelinePlace) => ({
  value: `${at.toISOString()} ${type} ${version}`,
  id,
})

/** SQL: the first entries of a type after those of the cursor, which ends with the type `last`. */
function pageOf(type: TimelineType, last: string | undefined): string {
  const beyond =
    last === undefined
      ? 'true'
      : type === last
        ? '(at, id, version) < (:at::timestamptz, :cursorId::uuid, :version::integer)'
        : // Entries of the same time are in descending order of their types.
          `at ${type < last ? '<=' : '<'} :at::timestamptz`
  return `select '${type}' collate "C" as type, id, version, at from (${SOURCES[type]}) as source
    where ${beyond} order by at desc, id desc, version desc limit :limit`
}

/** SQL: `id`, `version` and `at` of all entries of a type. */
const SOURCES = {
  ...Object.fromEntries(kindNames.map((kind) => [kinds[kind].object, associated(kind)])),
  change: `select record_id as id, version, at from record_history
    where organization_id = :organization and record_id in (select id from own)`,
  run: `select id, 0 as version, created_at as at from runs
    where organization_id = :organization and record_id in (select id from own) and kind = 'run'`,
  delivery: `select id, 0 as version, created_at as at from deliveries
    where organization_id = :organization and subject_id in (select id from own)`,
} as Record<TimelineType, string>

function associated(target: KindName): string {
  const at = target === 'activities' ? 'occurred_at' : 'created_at'
  return `select r.id, 0 as version, r.${at} as at from (
      select b_id as id from associations
      where organization_id = :organization and a_id = :id and a_entity = :kind and b_entity = '${target}'
      union all
      select a_id from associations
      where organization_id = :organization and b_id = :id and b_entity = :kind and a_entity = '${target}') as linked
    join ${target} r on r.organization_id = :organization and r.id = linked.id and r.deleted_at is null`
}
