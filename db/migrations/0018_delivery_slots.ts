import type { Knex } from 'knex'

/** A delivery that waits for its next attempt holds no slot of its endpoint: those that do, and those due, are counted. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create index deliveries_slots on deliveries (organization_id, webhook_id, next_attempt_at)
      where status = 'delivering';
    drop index deliveries_busy;
  `)
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    create index deliveries_busy on deliveries (organization_id, webhook_id) where status = 'delivering';
    drop index deliveries_slots;
  `)
}
