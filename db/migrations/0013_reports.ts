import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Reports of analytics: saved charts. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table reports (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      description text,
      -- a list of titles with their queries, as sent
      charts jsonb not null,
      version integer not null default 1,
      created_by jsonb not null,
      updated_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
  `)
  await protect(knex, 'reports')
}
