import type { Knex } from 'knex'
import { TRACE } from '../postgres/trace.ts'
import { protect } from './protect.ts'
import { searchView } from './search-view.ts'

/** Runs of workflows and node tests: their queue, their results, waits and signals. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table runs (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      kind text not null default 'run' check (kind in ('run', 'node_test')),
      workflow_id uuid,
      workflow_version integer,
      workflow_name text not null,
      -- its migrations to other versions, the oldest first: [{from_version, to_version, at, by}]; null: none
      migrations jsonb,
      -- 'queued' is the outbox; a row that has left it is never started again
      status text not null default 'queued' check (status in
        ('queued', 'running', 'paused', 'completed', 'failed', 'cancelled', 'terminated', 'lost', 'skipped')),
      trigger jsonb not null,
      -- What makes the start by a trigger happen once: the event's id, a schedule's nominal time. Null: not deduplicated.
      trigger_key text,
      -- the time of the schedule that started it; null for its retries, too
      scheduled_at timestamptz(3),
      -- How many runs led to this one through events or as parents, and the last of them. 0 and null: started by the
      -- API, a webhook or a schedule. Ids of other runs have no foreign key: those may be purged earlier.
      depth integer not null default 0,
      cause uuid,
      -- the run or the event that began the chain; null: the run itself
      root uuid,
      -- of the request that led to it, also through events and runs
      trace_id uuid not null default ${TRACE},
      -- the run of which it is a child
      parent_run_id uuid,
      -- the first run of a chain of retries: idempotency keys of external calls keep its id
      retry_of uuid,
      -- of a retry: {run_id, from_node, items}, the run that was retried, the node that the retry started with and the
      -- items that were named, if any
      retry jsonb,
      -- the key that its start gave; of one workflow no two open runs have the same, except for those being cancelled
      run_key text,
      -- the run with its key whose cancellation was requested: it starts after that has ended
      follows uuid,
      -- of a retry: the runs whose id idempotency keys of nodes have, by node, where it is not that of the first run
      key_runs jsonb,
      -- the interpreter version that its program needs: only a worker of this version or a newer one may claim it
      engine integer not null default 1,
      inputs jsonb not null,
      -- of a node test: {node_type, title, sealed}; config and inputs are sealed until the test ends
      node jsonb,
      -- the record that the run is about, if any
      record_id uuid,
      outputs jsonb,
      error jsonb,
      -- its outcome, from the segment on that decided it and began the cleanup: {status, outputs, error, segment, at,
      -- paused_ms}; null: it has no cleanup nodes, or has not come to an end
      ending jsonb,
      -- characters of the data that its segments have written; the plan limits it
      data_bytes bigint not null default 0,
      -- the key of admission by concurrency; node tests share one lane per organization
      lane uuid not null generated always as (coalesce(workflow_id, organization_id)) stored,
      -- the workflow's own limit, from the settings of the version
      concurrency integer,
      -- what becomes of a run above it; null: it waits
      on_limit text check (on_limit in ('skip', 'cancel_running')),
      -- What a queued run waits for before it can be claimed, and when a relay looks at it next; null: it can be claimed.
      -- 'admission': its keys are not rendered yet. See db/runs/admit.ts.
      hold text check (hold in ('admission', 'predecessor', 'debounce', 'rate', 'key')),
      hold_until timestamptz(3) check ((hold is null) = (hold_until is null)),
      -- the rendered keys, for the API; and each with its workflow as an id
      keys jsonb,
      concurrency_key uuid,
      debounce_key uuid,
      rate_key uuid,
      -- the first start of the debounce that it continues
      debounced_from timestamptz(3),
      -- when the rate let it through
      rated_at timestamptz(3),
      -- 0: a client may wait for the run; 1: started by a trigger or a webhook. Lower ones are claimed first.
      priority smallint not null default 0,
      -- from the settings of the version: a run that is open after it is late; and when workflow.late was raised
      expected_by timestamptz(3),
      late_at timestamptz(3),
      -- the title of the first node, for the Temporal UI
      starts_with text,
      -- the Temporal run that owns the row; after a reset the newest one
      temporal_run_id text,
      -- the events that its workflow's history in Temporal has at least: fewer, and Temporal was restored
      history_length integer,
      -- of a running run: whether the sweep has compared it with Temporal since it changed
      checked boolean not null default false,
      cancel_requested_at timestamptz(3),
      -- a relay is sending the cancellation to Temporal until then
      cancel_lease_until timestamptz(3),
      cancel_sent_at timestamptz(3),
      -- why, if nobody asked for it
      cancel_reason text,
      -- whether events can cancel it, by the settings of its version; and why it last failed to be compared with one,
      -- {message, event, event_id, at}
      cancel_on boolean not null default false,
      cancel_problem jsonb,
      -- a pause was requested; a running run is paused when no attempt of a node is in progress
      pause_requested_at timestamptz(3),
      paused_at timestamptz(3),
      -- the time of earlier pauses, which does not count against the workflow's timeout
      paused_ms bigint not null default 0,
      pauses integer not null default 0,
      -- what the relay must do with its workflow in Temporal: 'refresh' makes it read the rows
      workflow_command text check (workflow_command in ('refresh', 'terminate')),
      workflow_command_at timestamptz(3),
      workflow_command_lease_until timestamptz(3),
      -- a client follows the run until then: its segments send a notification
      watched_until timestamptz(3),
      -- of a running run: until when it only waits, at most ('infinity': for an event); null: it is active
      sleeps_until timestamptz(3),
      -- of a running run: whether only workers of pools have work for it
      in_pool boolean not null default false,
      -- why it makes no progress
      stuck_reason text,
      -- whether a reset in Temporal has taken it over, or it is a retry: only then are run_effects read
      reopened boolean not null default false,
      -- how often it was queued again: after a pause, or because Temporal had lost its workflow
      resumes integer not null default 0,
      -- attempts of its next segment that failed unexpectedly; at the limit the run fails
      failures integer not null default 0,
      created_at timestamptz(3) not null default now(),
      started_at timestamptz(3),
      updated_at timestamptz(3) not null default now(),
      ended_at timestamptz(3),
      -- With the columns that analytics reads. An update changes other indexes of the row anyway.
      primary key (organization_id, id) include (kind, workflow_id, status, started_at, ended_at),
      -- to the version, whose row never changes: locks of the check never wait for an edit of the workflow
      foreign key (organization_id, workflow_id, workflow_version) references workflow_versions on delete cascade,
      check ((kind = 'run') = (workflow_id is not null)),
      check ((workflow_id is null) = (workflow_version is null))
    );
    create unique index runs_trigger_key on runs (organization_id, workflow_id, trigger_key)
      where trigger_key is not null;
    create unique index runs_run_key on runs (organization_id, workflow_id, run_key)
      where run_key is not null and ended_at is null and cancel_requested_at is null;
    create index runs_run_key_cancelled on runs (organization_id, workflow_id, run_key)
      where run_key is not null and ended_at is null and cancel_requested_at is not null;
    create index runs_followers on runs (organization_id, follows) where status = 'queued' and hold = 'predecessor';
    -- a cancellation is passed on to children
    create index runs_parent on runs (organization_id, parent_run_id, id) where parent_run_id is not null;
    create index runs_retries on runs (organization_id, retry_of, id) where retry_of is not null;
    create index runs_queue on runs (organization_id, lane, priority, id) where status = 'queued' and hold is null;
    create index runs_held on runs (organization_id, hold_until, id) where status = 'queued' and hold is not null;
    -- the runs of a key that hold a slot, and those that wait for one
    create index runs_key on runs (organization_id, concurrency_key)
      where concurrency_key is not null and hold is null and ended_at is null;
    create index runs_key_waiting on runs (organization_id, concurrency_key, priority, id)
      where status = 'queued' and hold = 'key';
    create index runs_debounced on runs (organization_id, debounce_key)
      where status = 'queued' and hold = 'debounce';
    create index runs_rated on runs (organization_id, rate_key, rated_at)
      where rate_key is not null and rated_at is not null;
    create index runs_rate_waiting on runs (organization_id, rate_key, hold_until)
      where status = 'queued' and hold = 'rate';
    create index runs_busy on runs (organization_id, lane) where status = 'running';
    create index runs_active on runs (organization_id, sleeps_until) include (in_pool) where status = 'running';
    create index runs_idle on runs (updated_at) where status = 'running' and sleeps_until is null;
    create index runs_asleep on runs (updated_at) where status = 'running' and sleeps_until is not null;
    create index runs_unchecked on runs (updated_at)
      where status = 'running' and sleeps_until is not null and not checked;
    create index runs_overdue on runs (sleeps_until) where status = 'running' and sleeps_until is not null;
    create index runs_cancels on runs (cancel_requested_at)
      where status = 'running' and cancel_requested_at is not null and cancel_sent_at is null;
    -- the open runs that an event may cancel: of a workflow, and of a record
    create index runs_cancel_on on runs (organization_id, workflow_id, id) where cancel_on and ended_at is null;
    create index runs_cancel_on_record on runs (organization_id, record_id, workflow_id, id)
      where cancel_on and ended_at is null and record_id is not null;
    create index runs_commands on runs (workflow_command_at) where workflow_command is not null;
    create index runs_scheduled on runs (organization_id, workflow_id, scheduled_at)
      where scheduled_at is not null and ended_at is null;
    -- those to become late, also those that ended late while no worker lived
    create index runs_expected on runs (organization_id, expected_by)
      where expected_by is not null and late_at is null and (ended_at is null or ended_at > expected_by);
    create index runs_late on runs (organization_id, id desc) where late_at is not null;
    create index runs_late_open on runs (late_at) where late_at is not null and ended_at is null;
    create index runs_stuck on runs (organization_id, id) where stuck_reason is not null and ended_at is null;
    create index runs_on_limit on runs (organization_id, lane, id) where status = 'queued' and hold is null and on_limit is not null;
    create index runs_errors on runs using gin (organization_id, (error ->> 'message') gin_trgm_ops)
      where error is not null;
    create index runs_workflow on runs (organization_id, workflow_id, id desc);
    create index runs_status on runs (organization_id, status, id desc);
    create index runs_node_tests on runs (id) where kind = 'node_test';
    create index runs_record on runs (organization_id, record_id, id desc) where record_id is not null;

    -- An event that is compared with the open runs of a workflow, page by page; inserted when the event is matched, and
    -- deleted with the last page.
    create table event_cancels (
      organization_id uuid not null,
      id uuid not null,
      event_id uuid not null,
      workflow_id uuid not null,
      -- the run up to which it was compared
      after_id uuid not null default '00000000-0000-0000-0000-000000000000',
      created_at timestamptz(3) not null default now(),
      -- a worker compares the next page until then
      lease_until timestamptz(3),
      primary key (organization_id, id),
      foreign key (organization_id, event_id) references events on delete cascade,
      foreign key (organization_id, workflow_id) references workflows on delete cascade
    );
    create unique index event_cancels_event on event_cancels (organization_id, event_id, workflow_id);
    create index event_cancels_queue on event_cancels (organization_id, created_at, id);

    -- Retries, cancellations or migrations of many runs, which workers make in pages.
    create table run_batches (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      action text not null check (action in ('retry', 'cancel', 'migrate')),
      filter jsonb not null,
      -- of retries: {from_start, version}; of migrations: {version}
      options jsonb not null,
      total integer not null,
      -- the oldest run that was listed, while there may be older ones that match; no run is made before
      listed_to uuid,
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      -- a worker makes the next page until then
      lease_until timestamptz(3),
      ended_at timestamptz(3),
      primary key (organization_id, id)
    );
    create index run_batches_open on run_batches (created_at) where ended_at is null;
    create index run_batches_age on run_batches (ended_at) where ended_at is not null;

    -- The runs of a batch. They have no foreign key: a run may be purged before.
    create table run_batch_items (
      organization_id uuid not null,
      batch_id uuid not null,
      run_id uuid not null,
      -- 'refused': the run could not be retried, cancelled or migrated; see error
      status text not null default 'pending' check (status in ('pending', 'done', 'refused')),
      new_run_id uuid,
      error jsonb,
      primary key (organization_id, batch_id, run_id),
      foreign key (organization_id, batch_id) references run_batches on delete cascade
    );
    create index run_batch_items_status on run_batch_items (organization_id, batch_id, status, run_id);

    -- The relays of all workers.
    create table relays (
      id uuid primary key,
      -- the number of active runs that its worker carries
      active integer not null,
      -- what its worker can run
      engine integer not null default 1,
      seen_at timestamptz(3) not null
    );
    grant select, insert, update, delete on relays to agx_system;
    grant select (engine, seen_at) on relays to agx_app;

    -- The workers of pools; the last one of a pool stays after its end.
    create table pool_workers (
      id uuid primary key,
      pool text not null,
      seen_at timestamptz(3) not null
    );
    grant select, insert, update, delete on pool_workers to agx_system;

    -- Which relay starts a queued run; see db/runs/claims.ts.
    create table run_claims (
      organization_id uuid not null,
      run_id uuid not null,
      relay_id uuid not null,
      attempts integer not null default 1,
      claimed_at timestamptz(3) not null default now(),
      -- its start has failed: any relay may claim it from then on
      retry_at timestamptz(3),
      primary key (organization_id, run_id),
      foreign key (organization_id, run_id) references runs on delete cascade
    -- a few rows, which change with every run
    ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

    create table run_nodes (
      organization_id uuid not null,
      run_id uuid not null,
      -- The iteration: '' outside of any loop, 'each:3' in the fourth iteration of the loop 'each',
      -- 'each:3/inner:0' in a loop within it.
      path text not null default '',
      node_id text not null,
      node_type text not null,
      title text not null,
      -- only of a cleanup node, which runs after the outcome of the run is decided; undoes: the node that it compensates
      role text check (role in ('undo', 'on_cancel', 'finally')),
      undoes text,
      status text not null check (status in
        ('running', 'waiting', 'completed', 'failed', 'skipped', 'cancelled')),
      -- from 1
      attempt integer not null default 1,
      -- of an external node: names the attempt that has begun and may write the row; null: none has
      attempt_token uuid,
      -- of an external node: an attempt was lost after it had begun, so that its call may have been made; the next
      -- attempt repeats it with the same number
      may_have_called boolean not null default false,
      -- of an external node whose last attempt failed: when the next one is due; null: it has begun
      next_attempt_at timestamptz(3),
      -- of an external node that is running: since when its call waits for a slot of a worker
      slot_wanted_at timestamptz(3),
      -- what a running external node that reads pages keeps for its next attempt
      progress jsonb,
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
      primary key (organization_id, run_id, path, node_id),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    create index run_nodes_slot_wanted on run_nodes (organization_id, run_id)
      where slot_wanted_at is not null;

    -- A loop that a run has reached, and how far it is. Its items are opened in order, from next on.
    create table run_loops (
      organization_id uuid not null,
      run_id uuid not null,
      -- of its node in run_nodes
      path text not null generated always as (
        case when loop like '%/%' then regexp_replace(loop, '/[^/]*$', '') else '' end) stored,
      node_id text not null generated always as (regexp_replace(loop, '^.*/', '')) stored,
      -- both together: 'each', 'each:3/inner'
      loop text not null,
      items jsonb not null,
      count integer not null,
      next integer not null,
      succeeded integer not null,
      failed integer not null,
      -- of the results as JSON
      bytes integer not null,
      concurrency integer not null,
      on_item_error text not null check (on_item_error in ('stop', 'continue')),
      open boolean not null,
      -- the segment that started it
      segment integer not null,
      primary key (organization_id, run_id, loop),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    create index run_loops_open on run_loops (organization_id, run_id) where open;

    -- The items of loops that were opened.
    create table run_iterations (
      organization_id uuid not null,
      run_id uuid not null,
      loop text not null,
      -- from 0
      index integer not null,
      -- of its nodes in run_nodes
      path text not null generated always as (loop || ':' || cast(index as text)) stored,
      status text not null check (status in ('running', 'completed', 'failed', 'cancelled')),
      item jsonb,
      output jsonb,
      error jsonb,
      -- the segments that opened and ended it
      segment integer not null,
      settled_segment integer,
      started_at timestamptz(3) not null,
      ended_at timestamptz(3),
      -- of a turn of a repeat: whether its condition held afterwards, so that a retry makes no further turn
      met boolean not null default false,
      primary key (organization_id, run_id, loop, index),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    create index run_iterations_open on run_iterations (organization_id, run_id) where settled_segment is null;

    -- The answer of each segment: done again (redone workflow task, killed worker), it returns this one. Without a path:
    -- there is one loop of segments per run, and a segment may advance several iterations.
    create table run_segments (
      organization_id uuid not null,
      run_id uuid not null,
      temporal_run_id text not null,
      segment integer not null,
      -- of the first segment of a workflow that resumes the run and was reset: the Temporal run as which it was started
      origin text,
      -- what the workflow reported; the same segment with another report is of a Temporal that was restored
      happened jsonb not null default '[]',
      answer jsonb not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, run_id, temporal_run_id, segment),
      foreign key (organization_id, run_id) references runs on delete cascade
    );

    -- What the nodes of a run created, the nth of each node: a node that runs again after a reset finds it.
    create table run_effects (
      organization_id uuid not null,
      run_id uuid not null,
      path text not null,
      node_id text not null,
      n integer not null,
      -- the kind of the record, 'event', 'run', 'response' or 'stored_value'
      object text not null,
      object_id uuid not null,
      -- of what cannot be read again: what the call returned
      result jsonb,
      primary key (organization_id, run_id, path, node_id, n),
      foreign key (organization_id, run_id) references runs on delete cascade
    );

    -- What a run waits for. Whoever answers updates the row; the relay then signals the workflow, without payload, and
    -- its next segment reads the answer. An open wait has no answered_at.
    create table run_waits (
      organization_id uuid not null,
      run_id uuid not null,
      path text not null default '',
      node_id text not null,
      -- names an approval in its link and in the API
      id uuid not null,
      type text not null check (type in ('timer', 'event', 'decision', 'signal', 'child_run')),
      -- of a signal
      name text,
      -- of an event: what it waits for, one of 'name' and 'name:id of the record'
      topics text[],
      -- of an event: the record that it must be about, if the wait is for one; of child_run: the child
      subject_id uuid,
      -- of an event: a placeholder that must render true
      filter text,
      -- of an event: those of transactions that began earlier do not count; before created_at where events since the
      -- run's start count
      since timestamptz(3),
      -- of an event: the one up to which it has compared earlier events
      checked_id uuid,
      -- of an event: the values of the run that the filter reads; of an approval: title, message, assignees,
      -- escalate_to, and the reminders and escalations to come with their times
      settings jsonb,
      -- of an event: why its filter last failed, {message, event_id, at}
      problem jsonb,
      -- when the wait ends without an answer: a timer's time, a timeout; null: never
      expires_at timestamptz(3),
      -- when the relay must act next: a reminder, an escalation, a comparison with earlier events; null: not before an
      -- answer
      due_at timestamptz(3),
      -- the event, the payload of the signal, the decision, the child's outputs; null with answered_at: the wait has
      -- expired, or the run has ended
      answer jsonb,
      answered_by jsonb,
      answered_at timestamptz(3),
      -- a relay is signalling the workflow, or does what is due, until then
      lease_until timestamptz(3),
      -- when the workflow was signalled
      notified_at timestamptz(3),
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, run_id, path, node_id),
      foreign key (organization_id, run_id) references runs on delete cascade,
      check ((type = 'signal') = (name is not null)),
      check ((type = 'event') = (topics is not null and since is not null))
    );
    -- An event finds the waits for its name that are for its record or for any; a signal finds its run's by the key.
    -- Without the list of pending entries, which every look-up would read from end to end.
    create index run_waits_events on run_waits using gin (organization_id, topics) with (fastupdate = off)
      where type = 'event' and answered_at is null;
    create index run_waits_children on run_waits (organization_id, subject_id)
      where type = 'child_run' and answered_at is null;
    create unique index run_waits_approvals on run_waits (organization_id, id) where type = 'decision';
    create index run_waits_due on run_waits (due_at) where answered_at is null and due_at is not null;
    create index run_waits_unnotified on run_waits (answered_at)
      where answered_at is not null and notified_at is null;

    -- Mails that ask for a decision, one for each address; written in the transaction that opens the wait, or that raises
    -- the reminder.
    create table approval_mails (
      organization_id uuid not null,
      -- UUIDv7; the Message-ID is derived from it
      id uuid not null,
      run_id uuid not null,
      -- of a wait; after a reset there may be none of this id
      approval_id uuid not null,
      event text not null check (event in ('approval.requested', 'approval.reminder', 'approval.escalated')),
      address text not null,
      attempts integer not null default 0,
      -- when a relay may send it; while one does, when another may
      due_at timestamptz(3) not null default now(),
      -- why the last attempt failed
      problem text,
      sent_at timestamptz(3),
      -- sent, given up, or not needed any more
      ended_at timestamptz(3),
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, id),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    create index approval_mails_due on approval_mails (organization_id, due_at) where ended_at is null;
    create index approval_mails_run on approval_mails (organization_id, run_id, approval_id);

    -- Signals that were sent to a run, until a wait consumes them: one may come before the run waits for it.
    create table run_signals (
      organization_id uuid not null,
      run_id uuid not null,
      -- UUIDv7: ordered by time
      id uuid not null,
      name text not null,
      payload jsonb,
      actor jsonb not null,
      created_at timestamptz(3) not null default now(),
      -- the wait that took it
      consumed_at timestamptz(3),
      consumed_path text,
      consumed_node_id text,
      primary key (organization_id, run_id, id),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    create index run_signals_open on run_signals (organization_id, run_id, name, id) where consumed_at is null;

    -- The attempts of nodes with a \`rate\`: those that wait, in the order of n, and those that have begun.
    create table node_turns (
      organization_id uuid not null,
      workflow_id uuid not null,
      node_id text not null,
      n bigint not null generated by default as identity,
      run_id uuid not null,
      path text not null,
      -- its run had ended or was paused when its turn came near
      passed_over boolean not null default false,
      -- its number among the attempts of the node that have begun; null: it waits
      turn bigint,
      begun_at timestamptz(3) check ((begun_at is null) = (turn is null)),
      primary key (organization_id, workflow_id, node_id, n),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    -- The run first: without statistics, these would be taken for the queue of a node otherwise.
    create index node_turns_run on node_turns (run_id, organization_id);
    create unique index node_turns_own on node_turns (run_id, path, node_id, organization_id) where turn is null;
    create index node_turns_waiting on node_turns (organization_id, workflow_id, node_id, n)
      where turn is null and not passed_over;
    create unique index node_turns_begun on node_turns (organization_id, workflow_id, node_id, turn)
      where turn is not null;

    -- The Temporal namespace that this database belongs to, as workers found it. One row.
    create table temporal_server (
      only_row boolean primary key default true check (only_row),
      cluster_id text not null,
      namespace_id text not null,
      namespace text not null
    );
    grant select, insert, update on temporal_server to agx_system;
  `)
  for (const table of [
    'runs',
    'run_nodes',
    'run_loops',
    'run_iterations',
    'run_segments',
    'run_effects',
    'run_waits',
    'approval_mails',
    'run_signals',
    'node_turns',
    'run_claims',
    'event_cancels',
    'run_batches',
    'run_batch_items',
  ])
    await protect(knex, table)
  await searchView(knex, 'runs')
}
