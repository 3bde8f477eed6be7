import { validate as isUuid, v7 as uuidv7 } from 'uuid'
import type { NewEvent } from '../model/events/event.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { TRACE } from '../postgres/trace.ts'
import { traceEvents } from '../process/traces/events.ts'

/** The run that raises the events of a transaction; null where its actor is not a run. */
export const causeOf = ({ actor }: Tenant): string | null => (actor.type === 'workflow_run' ? actor.id : null)

/**
 * SQL: the depth of an event in a chain of runs that start each other: one more than that of the run that raises it; 0
 * without a run. It is read from the run's row by key, so that callers need not pass it on.
 */
export const depthBelow = (organizationId: string, cause: string): string =>
  `coalesce((select depth + 1 from runs where runs.organization_id = ${organizationId} and runs.id = ${cause}), 0)`

/** SQL: the trace of the run that raises an event, else the trace of the request. */
export const traceBelow = (organizationId: string, cause: string): string =>
  `coalesce((select trace_id from runs where runs.organization_id = ${organizationId} and runs.id = ${cause}), ${TRACE})`

/** SQL: the columns of new events, and a query that builds them from `rows` (JSON of `eventRows`). */
export const EVENT_COLUMNS =
  'organization_id, id, name, data, previous, subject_id, actor, cause, depth, trace_id'
export const selectEvents = (rows: string): string =>
  `select e.*, ${depthBelow('e.organization_id', 'e.cause')}, ${traceBelow('e.organization_id', 'e.cause')} from jsonb_to_recordset(${rows}) as e(
     organization_id uuid, id uuid, name text, data jsonb, previous jsonb, subject_id uuid, actor jsonb, cause uuid)`

/** SQL: the time of the event `e`, in ISO 8601. */
export const EVENT_TIME = `to_char(e.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/**
 * SQL: the names of the fields that the event `e` changed, as a JSON list; empty if it is not an update of a record.
 */
export const CHANGED_FIELDS = `to_jsonb(array(select jsonb_object_keys(coalesce(e.previous, '{}')) order by 1))`

/**
 * Inserts events into the outbox, in the transaction of the change that they report; the relay creates their
 * deliveries.
 * @returns the events' ids, in order.
 */
export async function insertEvents(tx: Tenant, events: NewEvent[]): Promise<string[]> {
  if (events.length === 0) return []
  return insertEventRows(tx, eventRows(tx, events))
}

/** Inserts rows of `eventRows`, for events of several runs, whose spans have different parents. @returns their ids. */
export async function insertEventRows(
  tx: Tenant,
  rows: readonly ReturnType<typeof eventRows>[number][],
): Promise<string[]> {
  await tx.trx.raw(`insert into events (${EVENT_COLUMNS}) ${selectEvents('cast(? as jsonb)')}`, [
    JSON.stringify(rows),
  ])
  return rows.map((row) => row.id)
}

/** Rows of `events`, for a statement that also writes other rows. */
export function eventRows(tx: Tenant, events: NewEvent[]) {
  if (events.length > 0) tx.wake('agx_events')
  const rows = events.map(({ id = uuidv7(), name, data, previous = null, cause = causeOf(tx) }) => ({
    organization_id: tx.organizationId,
    id,
    name,
    data,
    previous,
    // The data of an event raised by a node may have an id that is not a UUID.
    subject_id: isUuid(data.id) ? data.id : null,
    actor: tx.actor,
    cause,
  }))
  if (tx.spans)
    traceEvents(
      tx,
      rows.map(({ id, name, cause }, i) => ({ id, name, cause, span: events[i]!.span })),
    )
  return rows
}
