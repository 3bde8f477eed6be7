import type { Knex } from 'knex'

/** The amounts of deals from before they had line items. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- while a deal has line items: the amount and currency from before, which come back with the end of the last one
    alter table deals add column unsummed jsonb;
  `)
}
