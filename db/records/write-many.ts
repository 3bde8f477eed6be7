import { v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../tenancy.ts'
import { searchTextOf, writableColumns } from './columns.ts'
import type { Kind } from './kind.ts'
import { eventsOf, type Write } from './write.ts'

/**
 * Writes many records of one kind, all of them created or all of them changed, with their histories and events: one
 * statement, whose text is the same however many there are. It is all of them or, where it throws, none.
 */
export async function writeRecords(tx: Tenant, kind: Kind, writes: Write[]): Promise<void> {
  if (writes.length === 0) return
  const created = writes[0]!.action === 'created'
  // The record as the API shows it is a row too, whose columns bear the names of its fields.
  const input = writes.map((write) => ({
    record: write.record,
    action: write.action,
    changes: write.changes,
    previous: write.previous ?? null,
    search_text: searchTextOf(kind, write.record),
    events: eventsOf(kind, write).map((name) => ({ id: uuidv7(), name })),
  }))
  await tx.trx.raw(
    `with input as materialized (
       select i.*, (i.record ->> 'id')::uuid as id, (i.record ->> 'version')::integer as version,
              (i.record ->> 'updated_at')::timestamptz as at
       from jsonb_to_recordset(?) as i (record jsonb, action text, changes jsonb, previous jsonb, search_text text,
                                        events jsonb)
     ),
     record as (${created ? insert(kind) : update(kind)}),
     history as (
       insert into record_history (organization_id, object, record_id, version, action, changes, actor, at)
       select ?, ?, id, version, action, changes, ?, at from input
     )
     insert into events (organization_id, id, name, data, previous, subject_id, created_at)
     select ?, e.id, e.name, record, previous, input.id, at
     from input cross join lateral jsonb_to_recordset(events) as e (id uuid, name text)`,
    [
      JSON.stringify(input),
      ...[tx.organizationId],
      ...[tx.organizationId, kind.object, JSON.stringify(tx.actor)],
      ...[tx.organizationId],
    ],
  )
  tx.wake('agx_events')
}

const insert = (kind: Kind): string => {
  const columns = [
    ...writableColumns(kind),
    ...['id', 'version', 'created_at', 'updated_at', 'created_by', 'updated_by'],
  ]
  return `insert into ${kind.entity} (organization_id, search_text, ${columns.join(', ')})
          select ?, input.search_text, ${columns.map((column) => `r.${column}`).join(', ')}
          from input cross join lateral jsonb_populate_record(null::${kind.entity}, input.record) r`
}

const update = (kind: Kind): string => {
  const columns = [...writableColumns(kind), 'version', 'updated_at', 'updated_by']
  return `update ${kind.entity} t
          set ${columns.map((column) => `${column} = r.${column}`).join(', ')}, search_text = input.search_text,
              deleted_at = case input.action when 'deleted' then input.at end
          from input cross join lateral jsonb_populate_record(null::${kind.entity}, input.record) r
          where t.organization_id = ? and t.id = input.id`
}
