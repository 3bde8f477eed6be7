import type { Knex } from 'knex'

/** A node's duration is the time between its two stamps, which every reader can subtract. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table run_nodes drop column duration_ms')
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('alter table run_nodes add column duration_ms double precision')
}
