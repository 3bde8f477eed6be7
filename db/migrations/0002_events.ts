import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Events: the outbox of everything that changed. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table events (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      data jsonb not null,
      previous jsonb,
      -- the id of what the event is about (a record, a run), for ordering and for the log
      subject_id uuid,
      created_at timestamptz(3) not null default now(),
      -- when the relay made its deliveries; null: still in the outbox
      matched_at timestamptz(3),
      primary key (organization_id, id)
    );
    create index events_outbox on events (id) where matched_at is null;
    create index events_recent on events (organization_id, created_at desc);
  `)
  await protect(knex, 'events')
}
