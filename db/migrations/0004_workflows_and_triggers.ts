import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Workflows, their immutable versions, and the triggers of the active ones. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table workflows (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      description text,
      status text not null default 'DRAFT' check (status in ('DRAFT', 'active', 'inactive')),
      -- the newest
      version integer not null default 1,
      -- the one that triggers start; set by activation, unchanged while newer versions are saved
      active_version integer,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      -- the row stays for its runs: those in flight still need their program
      deleted_at timestamptz(3),
      primary key (organization_id, id),
      check ((status = 'active') = (active_version is not null))
    );
    create index workflows_name on workflows (organization_id, name) where deleted_at is null;
    create index workflows_newest on workflows (organization_id, id desc) where deleted_at is null;

    create table workflow_versions (
      organization_id uuid not null,
      workflow_id uuid not null,
      version integer not null,
      -- the YAML that it was saved from, or that its raw definition was written to; null if that is too large for a spec
      spec text,
      -- json, not jsonb: the order of nodes and of a switch's cases matters
      definition json not null,
      program json not null,
      -- what changed since the version before, in a line; null for the first
      summary text,
      -- the version whose content was saved again
      restored_from integer,
      created_by json not null,
      created_at timestamptz(3) not null default now(),
      -- what each run of the version needs: an access to the program parses all of it
      engine integer generated always as (cast(program ->> 'engine' as integer)) stored,
      concurrency integer generated always as (cast(program #>> '{settings,concurrency}' as integer)) stored,
      on_limit text generated always as (program #>> '{settings,on_limit}') stored,
      -- null: its runs are queued at once
      admission json generated always as (program #> '{settings,admission}') stored,
      -- null: no event cancels its runs
      cancel_on json generated always as (program #> '{settings,cancel_on}') stored,
      expected_ms bigint generated always as (cast(program #>> '{settings,expected_ms}' as bigint)) stored,
      starts_with text generated always as (program -> 'nodes' -> (program ->> 'start') ->> 'title') stored,
      has_cleanup boolean generated always as (program -> 'cleanup' is not null) stored,
      primary key (organization_id, workflow_id, version),
      foreign key (organization_id, workflow_id) references workflows on delete cascade
    );

    -- The events that some version of a workflow names in cancel_on: versions are immutable, and stay as long as their
    -- runs may be open.
    create table workflow_cancel_events (
      organization_id uuid not null,
      event text not null,
      workflow_id uuid not null,
      -- whether, in all versions, an event cancels only runs that its record has started
      same_record boolean not null,
      primary key (organization_id, event, workflow_id),
      foreign key (organization_id, workflow_id) references workflows on delete cascade
    );

    -- One row per trigger of an active workflow, taken from its active version; an inactive workflow has none.
    create table workflow_triggers (
      organization_id uuid not null,
      workflow_id uuid not null,
      -- in the list of the workflow's triggers, from 0
      position integer not null,
      -- the active version
      version integer not null,
      type text not null check (type in ('manual', 'webhook', 'event', 'schedule')),
      -- of type event: names, and a placeholder that must render true
      events text[],
      "when" text,
      -- of type schedule: its times and policies, as in the definition
      schedule jsonb,
      -- the last activation from an inactive state: earlier events start nothing, though they are matched later
      active_since timestamptz(3) not null default now(),
      -- the inputs of the runs that it starts: the defaults of the version
      inputs jsonb not null default '{}',
      -- why it last failed to start a run, {message, event, event_id, at}; and how often since the activation
      problem jsonb,
      problems integer not null default 0,
      primary key (organization_id, workflow_id, position),
      foreign key (organization_id, workflow_id, version) references workflow_versions on delete cascade,
      check ((type = 'event') = (events is not null)),
      check ((type = 'schedule') = (coalesce(schedule -> 'cron', schedule -> 'every') is not null))
    );
    -- finds the workflows of an organization that an event's name triggers: events @> array[name]
    create index workflow_triggers_events on workflow_triggers using gin (organization_id, events)
      where type = 'event';
    -- for the reconciler of schedules
    create index workflow_triggers_schedules on workflow_triggers (organization_id, workflow_id)
      where type = 'schedule';

    -- Which workflows have a Schedule in Temporal, and whether it is up to date.
    create table workflow_schedules (
      organization_id uuid not null,
      workflow_id uuid not null,
      -- counts the changes of what Temporal should have, which workflow_triggers and workflows say
      revision integer not null default 1,
      -- the revision that Temporal has; null: unknown
      synced integer,
      -- a relay is telling Temporal until then
      lease_until timestamptz(3),
      -- a worker starts waiting times until then; afterwards the end of its turn
      waiting_lease_until timestamptz(3),
      -- when the sweep last compared it with Temporal
      checked_at timestamptz(3) not null default now(),
      -- an operator paused it in Temporal, with this note, when it was last checked
      operator_pause text,
      -- paused through the API, without deactivating the workflow
      paused_at timestamptz(3),
      paused_by jsonb,
      pause_reason text,
      primary key (organization_id, workflow_id),
      foreign key (organization_id, workflow_id) references workflows on delete cascade,
      check ((paused_at is null) = (paused_by is null))
    );
    create index workflow_schedules_queue on workflow_schedules (lease_until) where synced is distinct from revision;

    -- What became of each time of a schedule: it fires at most once. The run has no foreign key: it may be purged before.
    create table schedule_fires (
      organization_id uuid not null,
      workflow_id uuid not null,
      -- the time by the schedule, without jitter
      scheduled_at timestamptz(3) not null,
      source text not null check (source in ('schedule', 'backfill')),
      -- 'waiting': for the end of an open run, or for a worker
      status text not null check (status in ('waiting', 'started', 'skipped')),
      -- whether a waiting one starts while other runs are open
      parallel boolean not null default false,
      -- why it was skipped, and the run that was open then
      reason text check (reason in ('overlap', 'superseded', 'buffer_full', 'catchup_window', 'paused', 'inactive')),
      open_run_id uuid,
      run_id uuid,
      -- of a backfill
      requested_by jsonb,
      created_at timestamptz(3) not null default now(),
      decided_at timestamptz(3),
      primary key (organization_id, workflow_id, scheduled_at),
      foreign key (organization_id, workflow_id) references workflows on delete cascade,
      check ((status = 'waiting') = (decided_at is null)),
      check ((status = 'skipped') = (reason is not null)),
      check ((status = 'started') = (run_id is not null)),
      check ((source = 'backfill') = (requested_by is not null))
    );
    create index schedule_fires_waiting on schedule_fires (organization_id, workflow_id, parallel, scheduled_at)
      where status = 'waiting';
    create index schedule_fires_age on schedule_fires (decided_at) where decided_at is not null;

    -- Sample outputs of nodes, by which others are tested: kept until they are replaced or the workflow is deleted.
    create table workflow_samples (
      organization_id uuid not null,
      workflow_id uuid not null,
      node_id text not null,
      -- secrets are masked
      output jsonb not null,
      -- the run whose output it was, and the iteration of its node; null: it was written by hand
      run_id uuid,
      path text,
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, workflow_id, node_id),
      foreign key (organization_id, workflow_id) references workflows on delete cascade
    );
    create index workflow_schedules_checked on workflow_schedules (checked_at) where synced = revision;
  `)
  for (const table of [
    'workflows',
    'workflow_versions',
    'workflow_cancel_events',
    'workflow_triggers',
    'workflow_schedules',
    'schedule_fires',
    'workflow_samples',
  ])
    await protect(knex, table)
}
