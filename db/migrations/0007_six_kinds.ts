import type { Knex } from 'knex'
import { dropRecordTable, recordTable } from './record-table.ts'

/** Deals, tasks, notes and activities, beside the contacts and companies of 0002. */
export async function up(knex: Knex): Promise<void> {
  await recordTable(
    knex,
    'deals',
    `name text not null, amount numeric, currency text, pipeline text not null, stage text not null,
     probability integer not null, expected_close_date date, closed_at timestamptz(3), lost_reason text,
     company_id uuid, contact_id uuid, source text, deal_type text`,
  )
  await recordTable(
    knex,
    'tasks',
    `title text not null, body text, status text not null, priority text not null, type text not null,
     due_at timestamptz(3), reminder_at timestamptz(3), completed_at timestamptz(3), assignee_id uuid`,
  )
  await recordTable(
    knex,
    'notes',
    'title text, body text not null, format text not null, pinned boolean not null, author_id uuid',
  )
  await recordTable(
    knex,
    'activities',
    `type text not null, subject text, body text, occurred_at timestamptz(3) not null, duration_seconds integer,
     direction text, outcome text, status text not null, location text`,
  )
  await knex.raw(`
    create index deals_company on deals (organization_id, company_id) where deleted_at is null;
    create index deals_contact on deals (organization_id, contact_id) where deleted_at is null;
    create index tasks_assignee on tasks (organization_id, assignee_id) where deleted_at is null;
  `)
}

export async function down(knex: Knex): Promise<void> {
  for (const table of ['activities', 'notes', 'tasks', 'deals']) await dropRecordTable(knex, table)
}
