import type { Knex } from 'knex'

/**
 * The known sender that the owner of a webhook has chosen, and the kinds of records that its requests write beside their
 * own. Webhooks that exist go on as before: without a sender, and writing companies and notes.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table incoming_webhooks
      add column sender text,
      add column also_writes text[] not null default '{companies,notes}'
  `)
}
