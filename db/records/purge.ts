import type { Knex } from 'knex'
import { entityNames } from './model/kinds/index.ts'
import { RESTORABLE_DAYS } from './restore.ts'

/** The number of records of each kind in one sweep, which runs every minute. */
const BATCH = 1_000

/**
 * Purges records that can no longer be restored, with their links, unique values and histories. The history of a merged
 * record, and the pointer to its winner, stay until the winner is purged.
 */
export async function purgeRecords(system: Knex): Promise<void> {
  for (const entity of entityNames)
    await system.raw(
      `with gone as (
         delete from ${entity} where (organization_id, id) in (
           select organization_id, id from ${entity}
           where deleted_at < now() - interval '${RESTORABLE_DAYS} days' order by deleted_at limit ?
           for update skip locked
         ) returning organization_id, id
       ), pointers as (
         delete from merged_records m using gone
         where m.organization_id = gone.organization_id and m.merged_into = gone.id
         returning m.organization_id, m.id
       ), histories as (
         delete from record_history h using (
           select organization_id, id from pointers
           union
           select organization_id, id from gone
           where not exists (select from merged_records m
                             where m.organization_id = gone.organization_id and m.id = gone.id)
         ) done
         where h.organization_id = done.organization_id and h.record_id = done.id
       ), unique_values as (
         delete from custom_field_values v using gone
         where v.organization_id = gone.organization_id and v.record_id = gone.id
       ), links_a as (
         delete from associations l using gone
         where l.organization_id = gone.organization_id and l.a_id = gone.id and l.a_entity = ?
       )
       delete from associations l using gone
       where l.organization_id = gone.organization_id and l.b_id = gone.id and l.b_entity = ?`,
      [BATCH, entity, entity],
    )
}
