import type { Knex } from 'knex'
import { LOG_RETENTION } from '../access/organization.ts'

const BATCH = 10_000

/**
 * Deletes ended deliveries past the organization's retention (default 30 days), then events without a delivery. A
 * bounded number per call.
 */
export async function purgeOutgoing(system: Knex): Promise<void> {
  await system.raw(
    `delete from deliveries where (organization_id, id) in (
       select d.organization_id, d.id from deliveries d join organizations o on o.id = d.organization_id
       where d.ended_at < now() - ${LOG_RETENTION}
       limit ?)`,
    [BATCH],
  )
  await system.raw(
    `delete from events where (organization_id, id) in (
       select e.organization_id, e.id from events e join organizations o on o.id = e.organization_id
       where e.matched_at < now() - ${LOG_RETENTION}
         and not exists (select from deliveries d where d.organization_id = e.organization_id and d.event_id = e.id)
       limit ?)`,
    [BATCH],
  )
}
