import type { Knex } from 'knex'

/** Failed polls of a source in a row, by which the next one is delayed. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`alter table incoming_webhooks add column poll_failures integer not null default 0`)
}
