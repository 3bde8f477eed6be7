import type { Knex } from 'knex'

/** What the relay is starting at this moment, of all that is queued: counting it must not read the whole queue. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create index runs_leased on runs (organization_id, lane, lease_until)
      where status = 'queued' and lease_until is not null;
    create index deliveries_leased on deliveries (organization_id, webhook_id, lease_until)
      where status = 'queued' and lease_until is not null;
  `)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop index runs_leased, deliveries_leased')
}
