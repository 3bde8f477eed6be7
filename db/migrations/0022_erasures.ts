import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Erasures of persons: durable jobs, then their receipts. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table erasures (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      contact_id uuid not null,
      -- by what the person is found; null once it has ended
      person jsonb,
      -- whether the whole name alone identifies the person
      by_name boolean not null,
      -- how far the search is: the table, the key of its last row, and how often all were searched before
      place integer not null default 0,
      cursor jsonb,
      pass integer not null default 0,
      -- of this pass
      changed boolean not null default false,
      busy integer not null default 0,
      -- rows that were in work in the pass before
      waiting integer not null default 0,
      -- rows by what they are
      erased jsonb not null,
      -- [{object, id, reason}], at most 1,000
      to_review jsonb not null,
      review_count integer not null,
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      due_at timestamptz(3) not null default now(),
      -- a worker searches the next rows until then
      lease_until timestamptz(3),
      ended_at timestamptz(3),
      primary key (organization_id, id)
    );
    create index erasures_open on erasures (organization_id, created_at, id) where ended_at is null;
  `)
  await protect(knex, 'erasures')
}
