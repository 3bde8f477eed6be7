import type { Tenant } from '../postgres/tenancy.ts'
import { chargeDeliveries } from './quota.ts'

/**
 * An endpoint went Inactive: what was on its way to it waits. Workflows of these deliveries are told, and end; their
 * attempts stay on record.
 */
export async function holdDeliveries(tx: Tenant, webhookId: string): Promise<void> {
  await tx.trx.raw(
    `update deliveries set held_for = 'endpoint', next_attempt_at = null, lease_until = null, status = 'held',
       changes = changes + case when status = 'delivering' then 1 else 0 end
     where organization_id = ? and webhook_id = ? and status in ('queued', 'delivering') and not test`,
    [tx.organizationId, webhookId],
  )
  tx.wake('agx_delivery_changes')
}

/** An endpoint is Active again: what waited for it is queued, as far as the month's quota allows. */
export async function releaseDeliveries(tx: Tenant, webhookId: string): Promise<void> {
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
  await tx.trx.raw(
    `with held as (
       select id, charged, row_number() over (partition by charged order by id) as place from deliveries
       where organization_id = :organizationId and webhook_id = :webhookId and status = 'held'
         and held_for = 'endpoint')
     update deliveries d set
       status = case when h.charged or h.place <= :granted then 'queued' else 'held' end,
       held_for = case when h.charged or h.place <= :granted then null else 'quota' end,
       charged = h.charged or h.place <= :granted,
       lease_until = null,
       releases = d.releases + 1
     from held h where d.organization_id = :organizationId and d.id = h.id`,
    { ...key, granted },
  )
  tx.wake('agx_deliveries')
}
