import type { Knex } from 'knex'

/**
 * The reminders of tasks that were raised. One whose time had passed when it was set, as in an import, counts as raised:
 * nobody wants to be reminded of the past.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table tasks add column reminded_for timestamptz(3);
    update tasks set reminded_for = reminder_at where reminder_at <= now();

    create function skip_past_reminder() returns trigger language plpgsql as $$
      begin
        new.reminded_for := new.reminder_at;
        return new;
      end
    $$;
    create trigger tasks_new_past_reminder before insert on tasks
      for each row when (new.reminder_at <= now()) execute function skip_past_reminder();
    create trigger tasks_past_reminder before update on tasks
      for each row when (new.reminder_at <= now() and new.reminder_at is distinct from old.reminder_at)
      execute function skip_past_reminder();

    create index tasks_reminders on tasks (organization_id, reminder_at)
      where reminder_at is not null and reminder_at is distinct from reminded_for and deleted_at is null
        and status not in ('done', 'cancelled');
  `)
}
