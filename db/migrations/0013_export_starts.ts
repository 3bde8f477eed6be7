import type { Knex } from 'knex'

/** Exports are started by the queue that starts imports, which counts starts. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table exports add column starts integer not null default 1')
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('alter table exports drop column starts')
}
