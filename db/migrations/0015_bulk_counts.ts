import type { Knex } from 'knex'

/** How many records of a bulk job are changed and refused: each GET of the job counted its items otherwise. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table bulk_jobs
      add column done integer not null default 0,
      add column refused integer not null default 0;
  `)
}
