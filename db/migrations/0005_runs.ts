import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Runs of workflows and node tests: the queue, the record of what happened, the answers of segments. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table runs (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      kind text not null default 'run' check (kind in ('run', 'node_test')),
      workflow_id uuid,
      workflow_version integer,
      workflow_name text not null,
      -- 'queued' is the outbox; a row that has left it is never started again
      status text not null default 'queued' check (status in
        ('queued', 'running', 'completed', 'failed', 'cancelled', 'terminated', 'lost')),
      trigger jsonb not null,
      inputs jsonb not null,
      -- of a node test: {node_type, title, config}
      node jsonb,
      -- the record that the run is about, if any
      record_id uuid,
      outputs jsonb,
      error jsonb,
      -- the key of admission by concurrency; node tests share one lane per organization
      lane uuid not null generated always as (coalesce(workflow_id, organization_id)) stored,
      -- the workflow's own limit, from the settings of the version
      concurrency integer,
      -- the title of the first node, for the Temporal UI
      starts_with text,
      -- a relay is starting it until then
      lease_until timestamptz(3),
      start_attempts integer not null default 0,
      -- the Temporal run that owns the row; after a reset the newest one
      temporal_run_id text,
      cancel_requested_at timestamptz(3),
      cancel_sent_at timestamptz(3),
      -- why it makes no progress, as the sweep found
      stuck_reason text,
      created_at timestamptz(3) not null default now(),
      started_at timestamptz(3),
      updated_at timestamptz(3) not null default now(),
      ended_at timestamptz(3),
      primary key (organization_id, id),
      check ((kind = 'run') = (workflow_id is not null))
    );
    create index runs_queue on runs (organization_id, lane, id) where status = 'queued';
    create index runs_busy on runs (organization_id, lane) where status = 'running';
    -- what the relay is starting at this moment: counting it must not read the whole queue
    create index runs_leased on runs (organization_id, lane, lease_until)
      where status = 'queued' and lease_until is not null;
    create index runs_idle on runs (updated_at) where status = 'running';
    create index runs_cancels on runs (cancel_requested_at)
      where status = 'running' and cancel_requested_at is not null and cancel_sent_at is null;
    create index runs_workflow on runs (organization_id, workflow_id, id desc);
    create index runs_status on runs (organization_id, status, id desc);
    create index runs_record on runs (organization_id, record_id, id desc) where record_id is not null;

    create table run_nodes (
      organization_id uuid not null,
      run_id uuid not null,
      node_id text not null,
      node_type text not null,
      title text not null,
      status text not null check (status in
        ('running', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')),
      -- from 1
      attempt integer not null default 1,
      -- its config with every placeholder rendered
      input jsonb,
      output jsonb,
      -- the handle that it left by
      handle text,
      error jsonb,
      wait_until timestamptz(3),
      -- the segments that started and settled it
      segment integer not null,
      settled_segment integer,
      position integer not null,
      started_at timestamptz(3) not null,
      ended_at timestamptz(3),
      primary key (organization_id, run_id, node_id),
      foreign key (organization_id, run_id) references runs on delete cascade
    );

    -- The answer of each segment: done again (redone workflow task, killed worker), it returns this one.
    create table run_segments (
      organization_id uuid not null,
      run_id uuid not null,
      temporal_run_id text not null,
      segment integer not null,
      answer jsonb not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, run_id, temporal_run_id, segment),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
  `)
  for (const table of ['runs', 'run_nodes', 'run_segments']) await protect(knex, table)
}
