import type { Knex } from 'knex'

/** The tasks whose reminder is to come. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`create index concurrently if not exists tasks_reminders on tasks (organization_id, reminder_at)
    where reminder_at > reminded_until and deleted_at is null and status not in ('done', 'cancelled')`)
}

export const config = { transaction: false }
