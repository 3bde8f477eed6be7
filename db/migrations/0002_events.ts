import type { Knex } from 'knex'
import { TRACE } from '../postgres/trace.ts'
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
      -- who made the change: {type, id}, as in created_by of records
      actor jsonb not null,
      -- The run that raised it, and how long the chain is that led to it: a run's events have the depth of the run + 1, a
      -- run that an event triggers has the depth of the event. Any other event has no cause and depth 0. No foreign
      -- key: an event may outlive its run.
      cause uuid,
      depth integer not null default 0,
      -- of the request that led to it, also through runs
      trace_id uuid not null default ${TRACE},
      created_at timestamptz(3) not null default now(),
      -- when the relay made its deliveries; null: still in the outbox
      matched_at timestamptz(3),
      primary key (organization_id, id)
    );
    -- organizations take turns
    create index events_outbox on events (organization_id, id) where matched_at is null;
    -- for waits: the events of a name since a moment, of one record or of any
    create index events_named on events (organization_id, name, id) include (subject_id);
  `)
  await protect(knex, 'events')
}
