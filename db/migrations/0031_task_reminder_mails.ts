import type { Knex } from 'knex'

/** Members may get a mail of the reminders of tasks that are assigned to them. */
export async function up(knex: Knex): Promise<void> {
  // The worker of the version before repeats a mail of a kind that it does not know, until one of this version sends it.
  await knex.raw(`
    alter table memberships add column task_reminder_mails boolean not null default false;
    alter table account_mails drop constraint account_mails_kind_check;
    alter table account_mails add constraint account_mails_kind_check
      check (kind in ('invitation', 'password_reset', 'sign_up', 'sign_up_known', 'webhook_disabled', 'runs_skipped',
        'source_failing', 'task_reminder')) not valid;
    alter table account_mails validate constraint account_mails_kind_check;
  `)
}
