import type { Knex } from 'knex'

/** The backoff of endpoints at which nobody answers, and the tests that overtake their queue. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw('alter table outgoing_webhooks add column if not exists backoff_until timestamptz(3)')
  await knex.raw(`create index concurrently if not exists deliveries_tests
    on deliveries (organization_id, webhook_id, id) where status = 'queued' and test`)
}

export const config = { transaction: false }
