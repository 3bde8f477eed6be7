import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Outgoing webhooks: endpoints, a delivery for each event and subscribed endpoint, and the log of attempts. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table outgoing_webhooks (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      url text not null,
      events text[] not null,
      -- a placeholder that must hold for an event to be delivered
      "when" text,
      -- whether deliveries about one record go one after another, in the order of their events
      ordered boolean not null default false,
      status text not null default 'Active' check (status in ('Active', 'Inactive')),
      -- why the service made it Inactive
      status_reason text,
      secret_sealed text not null,
      -- of before the last rotation; both sign until previous_secret_expires_at
      previous_secret_sealed text,
      previous_secret_expires_at timestamptz(3),
      -- custom headers: names, to show, and sealed JSON of names and values
      header_names text[] not null default '{}',
      headers_sealed text,
      -- seconds before each retry; null is the default schedule
      retry_schedule integer[],
      timeout_ms integer not null default 15000,
      concurrency integer not null default 10,
      -- attempts per minute; null: no limit
      rate_per_minute integer,
      -- since when every attempt has failed
      failing_since timestamptz(3),
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );

    create table deliveries (
      organization_id uuid not null,
      id uuid not null,
      webhook_id uuid not null,
      event_id uuid not null,
      -- of its event: the log by record, and the order per record, must not read the events
      subject_id uuid,
      -- a resend is the next generation
      generation integer not null default 0,
      -- sent on request: one attempt, to an endpoint in either status, not counted in the quota
      test boolean not null default false,
      -- 'queued' is the outbox
      status text not null
        check (status in ('held', 'queued', 'delivering', 'succeeded', 'failed', 'cancelled')),
      -- what a held one waits for: its endpoint to become Active, quota, or to be resumed; 'operator' where the activity
      -- of one that is 'delivering' is paused in Temporal
      held_for text check (held_for in ('endpoint', 'quota', 'paused', 'operator')),
      -- whether it was charged to the month's quota
      charged boolean not null default false,
      -- how often it was released after being held; each release is another Temporal workflow, '<id>:<releases>'
      releases integer not null default 0,
      -- how often the row was changed while its workflow ran, and how many of these the workflow was signalled
      changes integer not null default 0,
      changes_told integer not null default 0,
      attempts integer not null default 0,
      next_attempt_at timestamptz(3),
      error text,
      -- an attempt is in progress until then, and holds a slot of the endpoint; its worker renews it
      slot_until timestamptz(3),
      -- a column, because the planner took a fifth of the deliveries that wait for a retry for attempts, and read them all
      in_attempt boolean not null generated always as (status = 'delivering' and next_attempt_at is null) stored,
      -- since when a due retry waits for a slot, until its attempt begins
      slot_wanted_at timestamptz(3),
      -- the relay of the worker that has it: which started its workflow, or made its last attempt
      relay_id uuid,
      -- that relay is starting it until then
      lease_until timestamptz(3),
      -- a relay is signalling its workflow until then
      changes_lease_until timestamptz(3),
      created_at timestamptz(3) not null default now(),
      started_at timestamptz(3),
      ended_at timestamptz(3),
      -- when the sweep last looked up its workflow
      checked_at timestamptz(3),
      -- With the columns that analytics reads. An update of them changes other indexes of the row anyway.
      primary key (organization_id, id) include (webhook_id, status, test, attempts, started_at, ended_at),
      unique (organization_id, event_id, webhook_id, generation),
      foreign key (organization_id, webhook_id) references outgoing_webhooks on delete cascade,
      foreign key (organization_id, event_id) references events on delete cascade
    );
    create index deliveries_queue on deliveries (organization_id, webhook_id, id) where status = 'queued';
    -- a delivery that waits for its next attempt holds no slot of its endpoint: those in an attempt, and those due, count
    create index deliveries_slots on deliveries (organization_id, webhook_id, next_attempt_at) include (held_for)
      where status = 'delivering';
    -- the attempts in progress, of all endpoints; without slot_until, which each renewal changes
    create index deliveries_in_attempt on deliveries (organization_id, webhook_id) where in_attempt;
    -- the retries that a relay gives the next slots
    create index deliveries_slot_wanted on deliveries (organization_id, webhook_id, slot_wanted_at)
      where status = 'delivering' and slot_wanted_at is not null;
    -- what the relay is starting at this moment: counting it must not read the whole queue
    create index deliveries_leased on deliveries (organization_id, webhook_id, lease_until)
      where status = 'queued' and lease_until is not null;
    create index deliveries_held on deliveries (organization_id, webhook_id, held_for, id) where status = 'held';
    create index deliveries_idle on deliveries ((coalesce(checked_at, started_at))) where status = 'delivering';
    create index deliveries_changed on deliveries (id) where changes > changes_told;
    create index deliveries_subject on deliveries (organization_id, subject_id, id desc) where subject_id is not null;
    create index deliveries_open_subject on deliveries (organization_id, webhook_id, subject_id, id)
      where status in ('held', 'queued', 'delivering') and subject_id is not null;
    create index deliveries_webhook on deliveries (organization_id, webhook_id, id desc);

    create table delivery_attempts (
      organization_id uuid not null,
      delivery_id uuid not null,
      attempt integer not null,
      -- written before sending; stays unknown after a crash, and then does not count in the retry schedule
      status text not null default 'unknown' check (status in ('unknown', 'succeeded', 'failed')),
      started_at timestamptz(3) not null default now(),
      http_status integer,
      duration_ms double precision,
      response_headers jsonb,
      response_body text,
      error text,
      primary key (organization_id, delivery_id, attempt),
      foreign key (organization_id, delivery_id) references deliveries on delete cascade
    );
  `)
  await knex.raw(`
    -- Resends of everything that failed or was missed in a period. Workers create the deliveries page by page.
    create table outgoing_replays (
      organization_id uuid not null,
      id uuid not null,
      webhook_id uuid not null,
      include text[] not null,
      since timestamptz(3) not null,
      until timestamptz(3) not null,
      status text not null default 'running' check (status in ('running', 'paused', 'stopped', 'completed')),
      -- the events found when it was created
      total integer not null,
      created integer not null default 0,
      skipped integer not null default 0,
      -- the last event that was read
      position uuid,
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      ended_at timestamptz(3),
      lease_until timestamptz(3),
      primary key (organization_id, id),
      foreign key (organization_id, webhook_id) references outgoing_webhooks on delete cascade
    );
    create index outgoing_replays_running on outgoing_replays (created_at) where status = 'running';
    create index outgoing_replays_webhook on outgoing_replays (organization_id, webhook_id, id);
  `)
  for (const table of ['outgoing_webhooks', 'deliveries', 'delivery_attempts', 'outgoing_replays'])
    await protect(knex, table)
}
