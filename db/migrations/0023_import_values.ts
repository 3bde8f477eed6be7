import type { Knex } from 'knex'

/** What values of the columns of an import mean. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- column to value to what it means, or to null, as requested
    alter table imports add column meanings jsonb not null default '{}';
  `)
}
