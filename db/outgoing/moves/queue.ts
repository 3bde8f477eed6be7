import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { DeliveryStatus, HeldFor } from '../../model/outgoing/statuses.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'
import { START_END } from '../slot-lease.ts'

/** The creation of deliveries, and their start by the relay; the table is in `db/model/outgoing/statuses.ts`. */

export interface NewDelivery {
  organization_id: string
  webhook_id: string
  event_id: string
  /** What the event is about; null if it is not known by an id. */
  subject_id: string | null
  /** Whether the endpoint is Active. */
  active: boolean
  /** Whether the month's quota was charged for it. */
  charged: boolean
  /** One attempt, to an Active or Inactive endpoint, outside of the quota. */
  test?: boolean
  /** The number of earlier deliveries of the event to this endpoint. */
  generation?: number
}

/** Inserts deliveries; existing ones stay unchanged. @returns how many of the given ones are queued. */
export async function insertDeliveries(trx: Knex, deliveries: NewDelivery[]): Promise<number> {
  if (deliveries.length === 0) return 0
  const rows = deliveries.map(toRow)
  // As JSON, because a statement has at most 65,535 parameters.
  await trx.raw(
    `insert into deliveries
       (organization_id, id, webhook_id, event_id, subject_id, generation, test, status, held_for, charged)
     select organization_id, id, webhook_id, event_id, subject_id, generation, test, status, held_for, charged
     from jsonb_to_recordset(?) as d(organization_id uuid, id uuid, webhook_id uuid, event_id uuid, subject_id uuid,
       generation integer, test boolean, status text, held_for text, charged boolean)
     on conflict (organization_id, event_id, webhook_id, generation) do nothing`,
    [JSON.stringify(rows)],
  )
  return rows.filter(({ status }) => status === 'queued').length
}

/** Inserts one delivery and wakes the relay. @returns its id. */
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

/** One release of a delivery; each release is a separate workflow. */
export interface Release {
  organization_id: string
  id: string
  releases: number
}

/** @returns the number of deliveries that changed from queued to delivering. */
export async function markDeliveriesStarted(system: System, deliveries: Release[]): Promise<number> {
  // `releases` excludes a delivery that was held and released since its start: it waits for another workflow. A locked
  // row is skipped: its first attempt writes the same.
  const { rowCount } = await system.raw<{ rowCount: number }>(
    `update deliveries d set status = 'delivering', started_at = now(), lease_until = null,
       slot_wanted_at = null, slot_until = ${START_END}
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

/** Fails a delivery whose start Temporal rejected with `reason`. @returns whether it was queued. */
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
