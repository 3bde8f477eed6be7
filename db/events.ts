import { validate as isUuid, v7 as uuidv7 } from 'uuid'
import type { Tenant } from './tenancy.ts'

export interface NewEvent {
  /** `<entity>.<action>`, one of the catalogue or raised by `emit_event`. */
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
  const rows = events.map((event) => ({
    organization_id: tx.organizationId,
    id: uuidv7(),
    name: event.name,
    data: JSON.stringify(event.data),
    previous: event.previous ? JSON.stringify(event.previous) : null,
    // Events of others (`emit_event`) may bring ids of their own kind.
    subject_id: isUuid(event.data.id) ? event.data.id : null,
  }))
  await tx.trx('events').insert(rows)
  tx.wake('agx_events')
  return rows.map((row) => row.id)
}
