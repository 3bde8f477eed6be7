import { v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../postgres/tenancy.ts'
import { searchTextOf, toColumn, writableColumns } from './model/columns.ts'
import type { Kind } from './model/kind.ts'
import { eventsOf, type Write } from './model/prepare.ts'
import type { AgxRecord } from './model/schemas.ts'

/** Writes a record, its history and its events in one statement: one round trip, and none without the others. */
export async function writeRecord(tx: Tenant, kind: Kind, write: Write): Promise<void> {
  const { record, action } = write
  const change = action === 'created' ? insert(tx, kind, record) : update(tx, kind, record, action)
  const events = eventsOf(kind, write)
  const actor = JSON.stringify(tx.actor)
  const data = JSON.stringify(record)
  const previous = write.previous ? JSON.stringify(write.previous) : null
  const at = record.updated_at
  await tx.trx.raw(
    `with record as (${change.sql}),
     history as (
       insert into record_history (organization_id, object, record_id, version, action, changes, actor, at)
       values (?, ?, ?, ?, ?, ?, ?, ?)
     )
     insert into events (organization_id, id, name, data, previous, subject_id, created_at)
     values ${events.map(() => '(?, ?, ?, ?, ?, ?, ?)').join(', ')}`,
    [
      ...change.bindings,
      tx.organizationId,
      kind.object,
      record.id,
      record.version,
      action,
      JSON.stringify(write.changes),
      actor,
      at,
      ...events.flatMap((name) => [tx.organizationId, uuidv7(), name, data, previous, record.id, at]),
    ] as never,
  )
  tx.wake('agx_events')
}

interface Statement {
  sql: string
  bindings: unknown[]
}

/** Always all columns, so that the text of the statement, and with it the prepared statement, is the same. */
function insert(tx: Tenant, kind: Kind, record: AgxRecord): Statement {
  const columns = writableColumns(kind)
  const others = [
    'organization_id',
    'id',
    'version',
    'created_at',
    'updated_at',
    'created_by',
    'updated_by',
    'search_text',
  ]
  return {
    sql: `insert into ${kind.entity} (${[...columns, ...others].join(', ')})
          values (${[...columns, ...others].map(() => '?').join(', ')})`,
    bindings: [
      ...columns.map((column) => toColumn(kind, column, record[column])),
      tx.organizationId,
      record.id,
      record.version,
      record.created_at,
      record.updated_at,
      JSON.stringify(record.created_by),
      JSON.stringify(record.updated_by),
      searchTextOf(kind, record),
    ],
  }
}

function update(tx: Tenant, kind: Kind, record: AgxRecord, action: Write['action']): Statement {
  const columns = writableColumns(kind)
  return {
    sql: `update ${kind.entity} set ${columns.map((column) => `${column} = ?`).join(', ')},
            version = ?, updated_at = ?, updated_by = ?, search_text = ?, deleted_at = ?
          where organization_id = ? and id = ?`,
    bindings: [
      ...columns.map((column) => toColumn(kind, column, record[column])),
      record.version,
      record.updated_at,
      JSON.stringify(record.updated_by),
      searchTextOf(kind, record),
      action === 'deleted' ? record.updated_at : null,
      tx.organizationId,
      record.id,
    ],
  }
}
