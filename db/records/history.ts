import type { Actor } from '../model/actor.ts'
import { decodeCursor, encodeCursor, queryHash } from '../model/lists/cursor.ts'
import type { Page } from '../model/lists/page.ts'
import { customName } from '../model/records/filters.ts'
import type { Fragment } from '../model/records/fragment.ts'
import type { KindName } from '../model/records/kind.ts'
import { kinds } from '../model/records/kinds/index.ts'
import type { Write } from '../model/records/prepare.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { recordNotFound } from './merged.ts'

/** A change of a record, or of a record that was merged into it, as `record_id` shows. */
export interface HistoryEntry {
  object: 'history_entry'
  record_id: string
  version: number
  action: Write['action']
  /** By field, each custom field as `custom_fields.<name>`. */
  changes: Record<string, { from: unknown; to: unknown }>
  actor: Actor
  at: string
  /** For `merged`: the id of the loser. */
  merged_from: string | null
}

export interface HistoryQuery {
  limit: number
  offset: number
  cursor?: string | undefined
  order: 'asc' | 'desc'
  /** Only changes of this field: of the kind, or `custom_fields.<name>`. */
  field?: string | undefined
}

/**
 * The changes of a record and of the records merged into it; also of a deleted record until its purge. Throws
 * `not_found`; `invalid_request` for a cursor of another query.
 */
export async function listHistory(
  tx: Tenant,
  kind: KindName,
  id: string,
  { limit, offset, cursor, order, field }: HistoryQuery,
): Promise<Page<HistoryEntry>> {
  const definition = kinds[kind]
  const missing = await recordNotFound(tx, definition, id)
  if (missing.details.merged_into) throw missing
  const exists = await tx.trx(kind).where({ organization_id: tx.organizationId, id }).first('id')
  if (!exists) throw missing
  const hash = queryHash(['history', kind, id, order, ...(field === undefined ? [] : [field])])
  const position = cursor ? decodeCursor(hash, cursor, (text) => POSITION.test(text)) : undefined
  const [at, version] = position?.value?.split(' ') ?? []
  const changed = field === undefined ? undefined : changesOf(field)
  const source = `from record_history where organization_id = ? and record_id in (
    select ?::uuid union all select id from merged_records where organization_id = ? and merged_into = ?)
    ${changed ? `and ${changed.sql}` : ''}`
  const bindings = [tx.organizationId, id, tx.organizationId, id, ...(changed?.bindings ?? [])]
  const beyond = `and (at, version, record_id) ${order === 'asc' ? '>' : '<'} (?::timestamptz, ?::integer, ?::uuid)`
  const [{ rows }, counted] = await Promise.all([
    tx.trx.raw<{ rows: Row[] }>(
      `select record_id, version, action, changes, actor, at, merged_from ${source} ${position ? beyond : ''}
       order by at ${order}, version ${order}, record_id ${order} limit ? offset ?`,
      [...bindings, ...(position ? [at, version, position.id] : []), limit + 1, offset] as never,
    ),
    tx.trx.raw<{ rows: { total: number }[] }>(`select count(*) as total ${source}`, bindings as never),
  ])
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = rows.length > limit
  return {
    data: page.map(present),
    limit,
    offset,
    has_more,
    next_cursor: has_more && last ? encodeCursor(hash, positionOf(last)) : null,
    total: counted.rows[0]!.total,
    total_is_estimate: false,
  }
}

/** The condition of entries that changed a field. */
function changesOf(field: string): Fragment {
  const custom = customName(field)
  if (custom === undefined) return { sql: 'jsonb_exists(changes, ?)', bindings: [field] }
  return {
    sql: `changes #> array['custom_fields', 'from', ?] is distinct from changes #> array['custom_fields', 'to', ?]`,
    bindings: [custom, custom],
  }
}

/** The entries with these versions of records, by `<record id> <version>`. */
export async function historyEntries(
  tx: Tenant,
  wanted: { id: string; version: number }[],
): Promise<Map<string, HistoryEntry>> {
  const { rows } = await tx.trx.raw<{ rows: Row[] }>(
    `select h.record_id, h.version, h.action, h.changes, h.actor, h.at, h.merged_from
     from unnest(?::uuid[], ?::integer[]) as wanted (record_id, version)
     join record_history h on h.organization_id = ? and h.record_id = wanted.record_id and h.version = wanted.version`,
    [wanted.map(({ id }) => id), wanted.map(({ version }) => version), tx.organizationId] as never,
  )
  return new Map(rows.map((row) => [`${row.record_id} ${row.version}`, present(row)]))
}

interface Row extends Omit<HistoryEntry, 'object' | 'at'> {
  at: Date
}

/** A cursor's position: time and version of an entry. */
const POSITION = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \d{1,9}$/
const positionOf = (row: Row) => ({ value: `${row.at.toISOString()} ${row.version}`, id: row.record_id })

function present({ changes, at, ...row }: Row): HistoryEntry {
  const { custom_fields, ...fields } = changes
  const each = custom_fields ? customChanges(custom_fields) : {}
  return { object: 'history_entry', ...row, changes: { ...fields, ...each }, at: at.toISOString() }
}

/** The history stores all custom fields before and after. Maps, because a name can be that of an inherited member. */
function customChanges({ from, to }: { from: unknown; to: unknown }): HistoryEntry['changes'] {
  const before = new Map<string, unknown>(Object.entries(from ?? {}))
  const after = new Map<string, unknown>(Object.entries(to ?? {}))
  const names = [...new Set([...before.keys(), ...after.keys()])]
  return Object.fromEntries(
    names
      .filter((name) => JSON.stringify(before.get(name)) !== JSON.stringify(after.get(name)))
      .map((name) => [
        `custom_fields.${name}`,
        { from: before.get(name) ?? null, to: after.get(name) ?? null },
      ]),
  )
}
