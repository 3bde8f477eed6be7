import { validate as isUuid, v7 as uuidv7 } from 'uuid'
import type { Tenant } from '../postgres/tenancy.ts'

export interface NewEvent {
  /** Given where it must be known before the event is written. */
  id?: string
  /** `<entity>.<action>`, one of the catalogue or raised by a node. */
  name: string
  /** What subscribers get as `data`: the record as the API shows it, its id included. */
  data: Record<string, unknown>
  /** The old values of the changed fields, on updates. */
  previous?: Record<string, unknown>
}

/**
 * Writes events into the outbox, in the transaction of the change that they tell of; the relay makes the deliveries.
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

/** The rows of `events`, for a statement that writes them beside something else. */
export function eventRows(tx: Tenant, events: NewEvent[]) {
  if (events.length > 0) tx.wake('agx_events')
  return events.map(({ id = uuidv7(), name, data, previous = null }) => ({
    organization_id: tx.organizationId,
    id,
    name,
    data,
    previous,
    // The data of a node's event may have an id of another form.
    subject_id: isUuid(data.id) ? data.id : null,
  }))
}
