import { v7 as uuidv7 } from 'uuid'
import { turnsOf } from '../../workflows/shared/turns.ts'
import { causeOf, depthBelow, traceBelow } from '../events/outbox.ts'
import { searchTextOf, writableColumns } from '../model/records/columns.ts'
import type { Kind } from '../model/records/kind.ts'
import { eventsOf, type Write } from '../model/records/prepare.ts'
import { MAX_JSON } from '../postgres/gather.ts'
import { OF_ORGANIZATION, type Tenant } from '../postgres/tenancy.ts'
import { traceEvents } from '../process/traces/events.ts'

/**
 * Writes records of one kind, all new or all changed, with their histories and events in one statement, or in a few if
 * they are very large. The text of the statement does not depend on the number of records, so it stays prepared. It does
 * not change what depends on the records: `writeRecords` does.
 */
export async function sendWrites(tx: Tenant, kind: Kind, writes: Write[]): Promise<void> {
  if (writes.length === 0) return
  const isNew = writes[0]!.action === 'created'
  const sql = statement(kind, isNew)
  const { organizationId, actor } = tx
  const cause = causeOf(tx)
  const bindings = [
    // the records
    organizationId,
    // their histories
    organizationId,
    kind.object,
    JSON.stringify(actor),
    tx.job ?? null,
    // the events
    organizationId,
    JSON.stringify(actor),
    cause,
    organizationId,
    cause,
    organizationId,
    cause,
  ]
  // The statement of a few is sent at once: `last` and callers count on the order of statements.
  const turn = turnsOf(organizationId, writes.length)()
  if (turn) await turn
  const made = writes.map((write) => ({
    write,
    events: eventsOf(kind, write).map((name) => ({ id: uuidv7(), name })),
  }))
  // Only creates are gathered into a shared statement (`later`): a change has read its record first, so no other writes
  // are pending, and a sum reads what was written.
  for (const rows of portions(made.map(({ write, events }) => rowOf(kind, write, events))))
    if (tx.gathers && isNew && !kind.sums) tx.later({ sql, rows, bindings })
    else await tx.trx.raw(sql, [`[${rows.join(',')}]`, ...bindings])
  if (tx.spans)
    traceEvents(
      tx,
      made.flatMap(({ write: { trace }, events }) => events.map((event) => ({ ...event, cause, trace }))),
    )
  tx.wake('agx_events')
}

function portions(rows: string[]): string[][] {
  const found: string[][] = [[]]
  let length = 0
  for (const row of rows) {
    if (length > 0 && length + row.length > MAX_JSON) {
      found.push([])
      length = 0
    }
    found.at(-1)!.push(row)
    length += row.length
  }
  return found
}

/** `record` has the shape of the API: its fields are named like the columns. */
const rowOf = (kind: Kind, write: Write, events: { id: string; name: string }[]): string =>
  JSON.stringify({
    record: write.record,
    action: write.action,
    changes: write.changes,
    previous: write.previous ?? null,
    trace: write.trace?.traceId ?? null,
    search_text: searchTextOf(kind, write.record),
    events,
  })

const statements = new Map<string, string>()

function statement(kind: Kind, isNew: boolean): string {
  const key = `${kind.entity} ${isNew}`
  const known = statements.get(key) ?? build(kind, isNew)
  statements.set(key, known)
  return known
}

const build = (kind: Kind, isNew: boolean): string =>
  `with input as materialized (
     select i.*, (i.record ->> 'id')::uuid as id, (i.record ->> 'version')::integer as version,
            (i.record ->> 'updated_at')::timestamptz as at
     from jsonb_to_recordset(?) as i (record jsonb, action text, changes jsonb, previous jsonb, search_text text,
                                      trace uuid, events jsonb)
   ),
   record as (${isNew ? insert(kind) : update(kind)}),
   history as (
     insert into record_history (organization_id, object, record_id, version, action, changes, actor, at, job_id)
     select ?, ?, id, version, action, changes, ?, at, ?::uuid from input
   )
   -- as old as the transaction, as all events are: at has the clock of this host
   insert into events (organization_id, id, name, data, previous, subject_id, actor, cause, depth, trace_id)
   select ?, e.id, e.name, record, previous, input.id, ?, ?, ${depthBelow('?', '?')}, coalesce(trace, ${traceBelow('?', '?')})
   from input cross join lateral jsonb_to_recordset(events) as e (id uuid, name text)`

const insert = (kind: Kind): string => {
  const columns = [
    ...writableColumns(kind),
    'alternate_keys',
    'id',
    'version',
    'created_at',
    'updated_at',
    'created_by',
    'updated_by',
  ]
  return `insert into ${kind.entity} (organization_id, search_text, ${columns.join(', ')})
          select ?, input.search_text, ${columns.map((column) => `r.${column}`).join(', ')}
          from input cross join lateral jsonb_populate_record(null::${kind.entity}, input.record) r`
}

/** Selects by a list of ids: PostgreSQL plans a join with `input` alone as a full scan of a small table. */
const update = (kind: Kind): string => {
  const columns = [
    ...writableColumns(kind),
    'alternate_keys',
    'version',
    'created_at',
    'updated_at',
    'updated_by',
  ]
  return `update ${kind.entity} t
          set ${columns.map((column) => `${column} = r.${column}`).join(', ')}, search_text = input.search_text,
              deleted_at = case input.action when 'deleted' then input.at end
          from input cross join lateral jsonb_populate_record(null::${kind.entity}, input.record) r
          where t.${OF_ORGANIZATION} and t.id = any(array(select id from input)) and t.id = input.id`
}
