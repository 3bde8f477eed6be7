import type { Knex } from 'knex'

/** Owners get a mail of a source whose polls keep failing. */
export async function up(knex: Knex): Promise<void> {
  // The worker of the version before repeats a mail of a kind that it does not know, until one of this version sends it.
  await knex.raw(`
    alter table account_mails drop constraint account_mails_kind_check;
    alter table account_mails add constraint account_mails_kind_check
      check (kind in ('invitation', 'password_reset', 'sign_up', 'sign_up_known', 'webhook_disabled', 'runs_skipped',
        'source_failing')) not valid;
    alter table account_mails validate constraint account_mails_kind_check;
  `)
}
