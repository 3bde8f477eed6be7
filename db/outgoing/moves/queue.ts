import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { System, Tenant } from '../../postgres/tenancy.ts'
import type { DeliveryStatus, HeldFor } from './statuses.ts'

/** How a delivery is born, and what the relay notes of its start; the table is in `statuses.ts`. */

export interface NewDelivery {
  organization_id: string
  webhook_id: string
  event_id: string
  /** Whether the endpoint is Active. */
  active: boolean
  /** Whether the month's quota was charged for it. */
  charged: boolean
  /** Sent once, to an endpoint in either state, without counting. */
  test?: boolean
  /** How often the event had been sent to this endpoint before. */
  generation?: number
}

/** Writes deliveries; one that exists already stays as it is. @returns how many of the given ones are queued. */
export async function insertDeliveries(trx: Knex, deliveries: NewDelivery[]): Promise<number> {
  if (deliveries.length === 0) return 0
  const rows = deliveries.map(toRow)
  await trx('deliveries')
    .insert(rows)
    .onConflict(['organization_id', 'event_id', 'webhook_id', 'generation'])
    .ignore()
  return rows.filter(({ status }) => status === 'queued').length
}

/** Writes one delivery, and wakes the relay. @returns its id. */
export async function insertDelivery(
  tx: Tenant,
  delivery: Omit<NewDelivery, 'organization_id'>,
): Promise<string> {
  const row = toRow({ ...delivery, organization_id: tx.organizationId })
  await tx.trx('deliveries').insert(row)
  tx.wake('agx_deliveries')
  return row.id
}

function toRow({ active, test = false, generation = 0, ...delivery }: NewDelivery) {
  const queued = test || delivery.charged
  const waitsFor: HeldFor = active ? 'quota' : 'endpoint'
  return {
    ...delivery,
    id: uuidv7(),
    test,
    generation,
    status: (queued ? 'queued' : 'held') satisfies DeliveryStatus,
    held_for: queued ? null : waitsFor,
  }
}

/** One release of a delivery: each has a workflow of its own. */
export interface Release {
  organization_id: string
  id: string
  releases: number
}

/** @returns how many were queued and are being delivered now. One that its first attempt holds needs no mark. */
export async function markDeliveriesStarted(system: System, deliveries: Release[]): Promise<number> {
  // One that was held and released since its start is queued again, for a workflow that has not been started. A locked
  // row is skipped: its first attempt writes the same, and must not be waited for.
  const { rowCount } = await system.raw<{ rowCount: number }>(
    `update deliveries d set status = 'delivering', started_at = now(), lease_until = null
     from (
       select d.organization_id, d.id
       from jsonb_to_recordset(?) as s(organization_id uuid, id uuid, releases integer)
       join deliveries d on d.organization_id = s.organization_id and d.id = s.id and d.releases = s.releases
       where d.status = 'queued' for update of d skip locked) s
     where d.organization_id = s.organization_id and d.id = s.id`,
    [
      JSON.stringify(
        deliveries.map(({ organization_id, id, releases }) => ({ organization_id, id, releases })),
      ),
    ],
  )
  return rowCount
}

/** Fails a delivery whose start Temporal refuses. `reason` is Temporal's. @returns whether it was queued. */
export async function failDeliveryStart(
  system: System,
  { organization_id, id, releases }: Release,
  reason: string,
): Promise<boolean> {
  const count = await system('deliveries')
    .where({ organization_id, id, releases, status: 'queued' })
    .update({ status: 'failed', error: reason, ended_at: system.fn.now(), lease_until: null })
  return count > 0
}
