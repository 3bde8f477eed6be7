import type { Knex } from 'knex'

/**
 * What values of the columns of an import mean, its country and stages, and what a dry run would change; how an export is
 * written; which reminders of tasks were raised.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- column to value to what it means, or to null, as requested
    alter table imports add column meanings jsonb not null default '{}';
    alter table imports add column country text;
    alter table imports add column create_stages boolean not null default false;
    -- the first rows of a dry run with their changes
    alter table imports add column preview jsonb;
    -- how the file is written: see db/model/files/export-format.ts
    alter table exports add column options jsonb not null default '{}';
    -- reminders up to this time were raised, or had passed when the task was made
    alter table tasks add column reminded_until timestamptz(3) not null default now();
  `)
}
