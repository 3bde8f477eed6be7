import type { Knex } from 'knex'
import type { HeldFor } from '../../model/outgoing/statuses.ts'
import type { System, Tenant } from '../../postgres/tenancy.ts'
import { chargeDeliveries, remainingQuota } from '../quota.ts'
import type { Release } from './queue.ts'

/**
 * Deliveries that wait for their endpoint, for the quota or for a user; the table is in `db/model/outgoing/statuses.ts`.
 */

/**
 * Holds the open deliveries of an endpoint that became Inactive. Their workflows are signalled and end; their attempts
 * stay in the log. @returns the number of deliveries.
 */
export async function holdDeliveries(tx: Tenant, webhookId: string): Promise<number> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries set held_for = 'endpoint', next_attempt_at = null, lease_until = null, status = 'held',
       changes = changes + case when status = 'delivering' then 1 else 0 end
     where organization_id = ? and webhook_id = ? and status in ('queued', 'delivering') and not test`,
    [tx.organizationId, webhookId],
  )
  tx.wake('agx_delivery_changes')
  return rowCount
}

/**
 * Records whether the activity of a delivery is paused in Temporal. A paused one is not woken and reserves no slot; only
 * unpausing it in Temporal continues it. @returns whether that has changed.
 */
export async function markPaused(tx: Tenant, { id, releases }: Release, paused: boolean): Promise<boolean> {
  const count = await tx
    .trx('deliveries')
    .where({ organization_id: tx.organizationId, id, releases, status: 'delivering' })
    .where({ held_for: paused ? null : 'operator' })
    .update({ held_for: paused ? 'operator' : null })
  return count > 0
}

/** Holds an open delivery until `resumeDelivery`. Its workflow is signalled and ends. @returns false if it is paused. */
export async function pauseDelivery(tx: Tenant, id: string): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries set held_for = 'paused', lease_until = null, status = 'held',
       changes = changes + case when status = 'delivering' then 1 else 0 end
     where organization_id = ? and id = ? and status in ('held', 'queued', 'delivering')
       and held_for is distinct from 'paused'`,
    [tx.organizationId, id],
  )
  tx.wake('agx_delivery_changes')
  // Its slot is free.
  tx.wake('agx_deliveries')
  return rowCount > 0
}

/**
 * Queues a paused delivery, or holds it for `waitsFor`. An attempt that may still be in progress delays the next one by
 * the rest of its lease. @returns false if it is not paused.
 */
export async function resumeDelivery(
  tx: Tenant,
  id: string,
  { waitsFor, charged }: { waitsFor: 'endpoint' | 'quota' | null; charged: boolean },
): Promise<boolean> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update deliveries set
       status = case when cast(:waitsFor as text) is null then 'queued' else 'held' end,
       held_for = cast(:waitsFor as text), charged = :charged, releases = releases + 1,
       relay_id = null, lease_until = null,
       next_attempt_at = coalesce(next_attempt_at, case when slot_until > now() then slot_until end)
     where organization_id = :organizationId and id = :id and status = 'held' and held_for = 'paused'`,
    { waitsFor, charged, organizationId: tx.organizationId, id } as never,
  )
  tx.wake('agx_deliveries')
  return rowCount > 0
}

/** Queues the held deliveries of an endpoint that became Active, within the quota. @returns their number. */
export async function releaseDeliveries(tx: Tenant, webhookId: string): Promise<number> {
  const key = { organizationId: tx.organizationId, webhookId }
  const { rows } = await tx.trx.raw<{ rows: { uncharged: number }[] }>(
    `with held as (
       select id, charged from deliveries
       where organization_id = :organizationId and webhook_id = :webhookId and status = 'held'
         and held_for = 'endpoint' for update)
     select count(*) filter (where not charged) as uncharged from held`,
    key,
  )
  const granted = await chargeDeliveries(tx.trx, tx.organizationId, rows[0]!.uncharged)
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `with held as (
       select id, charged, row_number() over (partition by charged order by id) as place from deliveries
       where organization_id = :organizationId and webhook_id = :webhookId and status = 'held'
         and held_for = 'endpoint')
     update deliveries d set
       status = case when h.charged or h.place <= :granted then 'queued' else 'held' end,
       held_for = case when h.charged or h.place <= :granted then null else 'quota' end,
       charged = h.charged or h.place <= :granted,
       relay_id = null, lease_until = null, releases = d.releases + 1
     from held h where d.organization_id = :organizationId and d.id = h.id`,
    { ...key, granted },
  )
  tx.wake('agx_deliveries')
  return rowCount
}

/** SQL condition: deliveries of the endpoint `w` are held for this reason. By index, however many are held. */
export const holdsFor = (reason: HeldFor): string => `exists (
  select from deliveries d where d.organization_id = w.organization_id and d.webhook_id = w.id
    and d.status = 'held' and d.held_for = '${reason}')`

/** Rows per statement. */
const BATCH = 10_000

/** Queues deliveries held for the quota, oldest first, within the current quota. @returns their number. */
export async function releaseForQuota(system: System): Promise<number> {
  const { rows } = await system.raw<{ rows: { organization_id: string }[] }>(
    `select distinct w.organization_id from outgoing_webhooks w
     where w.status = 'Active' and ${holdsFor('quota')}`,
  )
  let released = 0
  for (const { organization_id } of rows)
    released += await system.transaction((trx) => releaseWithinQuota(trx, organization_id))
  return released
}

/**
 * Queues deliveries of one organization, as `releaseForQuota`; of more than 10,000 the oldest. Charges only locked rows,
 * so that a concurrent cancellation or release is not charged twice. @returns their number.
 */
export async function releaseWithinQuota(trx: Knex, organizationId: string): Promise<number> {
  // Before the statement below, which reads every held delivery of the organization.
  if ((await remainingQuota(trx, organizationId)) === 0) return 0
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `select d.id from deliveries d
     join outgoing_webhooks w on w.organization_id = d.organization_id and w.id = d.webhook_id
     where d.organization_id = ? and d.status = 'held' and d.held_for = 'quota' and w.status = 'Active'
     order by d.id limit ? for update of d skip locked`,
    [organizationId, BATCH],
  )
  const granted = await chargeDeliveries(trx, organizationId, rows.length)
  if (granted === 0) return 0
  await trx.raw(
    `update deliveries set status = 'queued', held_for = null, charged = true, releases = releases + 1,
       relay_id = null, lease_until = null
     where organization_id = ? and id = any(?)`,
    [organizationId, rows.slice(0, granted).map(({ id }) => id)],
  )
  return granted
}
