import type { Knex } from 'knex'

/** What event triggers need to start runs, and the order of the queue of runs. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table workflow_triggers
      -- the last activation from an inactive state: earlier events start nothing, though they are matched later
      add column active_since timestamptz(3) not null default now(),
      -- the inputs of the runs that it starts: the defaults of the version
      add column inputs jsonb not null default '{}',
      -- why it last failed to start a run, {message, event, event_id, at}; and how often since the activation
      add column problem jsonb,
      add column problems integer not null default 0;

    -- 0: a client may wait for the run; 1: started by a trigger or a webhook. Lower ones are claimed first.
    alter table runs add column priority smallint not null default 0;
    drop index runs_queue;
    create index runs_queue on runs (organization_id, lane, priority, id) where status = 'queued';
  `)
}
