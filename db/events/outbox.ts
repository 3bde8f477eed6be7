import { validate as isUuid, v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../postgres/tenancy.ts'

export interface NewEvent {
  /** Set if the id must be known before the event is written. */
  id?: string
  /** `<entity>.<action>`, from the catalogue or raised by a node. */
  name: string
  /** Sent to subscribers as `data`: the record as the API shows it, with its id. */
  data: Record<string, unknown>
  /** The old values of the changed fields, on updates. */
  previous?: Record<string, unknown>
}

/**
 * Writes events into the outbox, in the transaction of the change that they report; the relay creates the deliveries.
 * @returns the events' ids, in order.
 */
export async function insertEvents(tx: Tenant, events: NewEvent[]): Promise<string[]> {
  if (events.length === 0) return []
  const rows = eventRows(tx, events)
  await tx.trx('events').insert(
    rows.map((row) => ({
      ...row,
      data: JSON.stringify(row.data),
      previous: row.previous && JSON.stringify(row.previous),
    })),
  )
  return rows.map((row) => row.id)
}

/** Rows of `events`, for a statement that also writes other rows. */
export function eventRows(tx: Tenant, events: NewEvent[]) {
  if (events.length > 0) tx.wake('agx_events')
  return events.map(({ id = uuidv7(), name, data, previous = null }) => ({
    organization_id: tx.organizationId,
    id,
    name,
    data,
    previous,
    // The data of an event raised by a node may have an id of another form.
    subject_id: isUuid(data.id) ? data.id : null,
  }))
}
