import type { Knex } from 'knex'

/** The sources that are due. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`create index concurrently if not exists incoming_webhooks_polls
    on incoming_webhooks (organization_id, next_poll_at) where next_poll_at is not null`)
}

export const config = { transaction: false }
