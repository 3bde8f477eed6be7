import type { Knex } from 'knex'

/** A replayed answer carries the ETag of the first. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw("alter table idempotency_keys add column headers jsonb not null default '{}'")
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('alter table idempotency_keys drop column headers')
}
