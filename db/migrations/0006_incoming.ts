import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Incoming webhooks: settings, the log of requests, deduplication and blocked addresses. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table incoming_webhooks (
      organization_id uuid not null references organizations on delete cascade,
      -- also the last part of the URL, hence unique by itself
      id uuid not null unique,
      name text not null,
      description text not null default '',
      status text not null default 'Active' check (status in ('Active', 'Inactive')),
      secret_sealed text not null,
      -- of before the last rotation, valid until previous_secret_expires_at
      previous_secret_sealed text,
      previous_secret_expires_at timestamptz(3),
      verification jsonb not null,
      ip_whitelist text[] not null default '{}',
      -- requests per minute, and how many unused ones of the minute before may be added
      rate_limit integer not null,
      burst integer not null default 0,
      -- {after, minutes}: an address that exceeded the limit so often within an hour is blocked for so long
      block jsonb,
      target_entity text not null,
      field_mapping jsonb not null,
      deduplication jsonb not null,
      -- seconds in which a request without a delivery id repeats one with the same body; 0: never
      dedupe_window integer not null default 0,
      -- names in lower case, and paths into the payload, whose values are masked in the log
      secret_headers text[] not null default '{}',
      secret_fields text[] not null default '{}',
      workflow_id uuid,
      workflow_inputs jsonb not null default '{}',
      -- further workflows: [{workflow_id, workflow_inputs, when}]
      listeners jsonb not null default '[]',
      -- the names of the headers and query parameters that workflows read
      trigger_headers text[] not null default '{}',
      trigger_query text[] not null default '{}',
      -- seconds in which the request waits for the answer of a workflow; 0: it is answered at once
      response_wait integer not null default 0 check (response_wait between 0 and 10),
      -- until then the next request is captured as a sample, of which nothing is written but its log entry
      capturing_until timestamptz(3),
      -- without a foreign key: the entry may be purged
      sample_log_id uuid,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id),
      -- deferred: a changed webhook is validated as a whole, after its update
      foreign key (organization_id, workflow_id) references workflows on delete set null (workflow_id)
        deferrable initially deferred
    );

    create table incoming_logs (
      organization_id uuid not null,
      webhook_id uuid not null,
      -- UUIDv7: ordered by time
      id uuid not null,
      created_at timestamptz(3) not null default now(),
      source_ip text not null,
      status text not null check (status in ('Success', 'Failed', 'Blocked')),
      action text check (action in ('Created', 'Updated', 'Skipped', 'Triggered')),
      http_status integer not null,
      -- as stated by the sender if the body was not read
      payload_size bigint not null,
      response_time_ms double precision not null,
      -- the stable code and the message that the sender got
      error text,
      message text,
      error_details jsonb,
      headers jsonb not null,
      payload text,
      payload_truncated boolean not null default false,
      -- what follows the payload, where a replay needs it
      payload_rest text,
      -- the request as received, where the payload or a header has masks and it can be replayed
      payload_sealed text,
      mapped_data jsonb,
      -- without foreign keys: the log may outlive the record and the run
      record_id uuid,
      run_id uuid,
      warnings text[] not null default '{}',
      -- more than one where the requests of a blocked address are folded
      requests integer not null default 1,
      content_type text,
      -- {headers, query}: what the runs of the request read of them
      context jsonb,
      -- whether the sender proved to have the secret: only then the request can be replayed
      verified boolean not null default false,
      -- SHA-256 of the delivery's id, if it has one, and its body: equal for an equal request; null if not verified
      fingerprint bytea,
      has_delivery_id boolean not null default false,
      -- of a replay: the entry whose request it is, and the replay; without foreign keys, for either may be purged
      replay_of uuid,
      replay_id uuid,
      primary key (organization_id, webhook_id, id),
      foreign key (organization_id, webhook_id) references incoming_webhooks on delete cascade
    );
    -- a request that was accepted is not replayed as one that failed
    create index incoming_logs_accepted on incoming_logs (organization_id, webhook_id, fingerprint)
      where status = 'Success' and (record_id is not null or action = 'Triggered');
    create index incoming_logs_replays on incoming_logs (organization_id, webhook_id, replay_id, id)
      where replay_id is not null;
    -- for the rotation of SECRETS_KEY
    create index incoming_logs_sealed on incoming_logs (organization_id, id) where payload_sealed is not null;
    -- for retention, because the key begins with the webhook, and for analytics
    create index incoming_logs_age on incoming_logs (organization_id, id)
      include (webhook_id, status, action, error, requests, response_time_ms);

    create table incoming_replays (
      organization_id uuid not null,
      id uuid not null,
      webhook_id uuid not null,
      -- one entry, or those of a period
      log_id uuid,
      include text[] not null,
      since timestamptz(3),
      until timestamptz(3),
      -- null: the one of the webhook
      field_mapping jsonb,
      status text not null default 'running' check (status in ('running', 'paused', 'stopped', 'completed')),
      -- why it was paused
      problem text,
      -- the entries found when it was created
      total integer not null,
      created integer not null default 0,
      updated integer not null default 0,
      -- without records: those for which workflows were started
      triggered integer not null default 0,
      skipped integer not null default 0,
      failed integer not null default 0,
      -- the last entry that was replayed
      position uuid,
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      ended_at timestamptz(3),
      lease_until timestamptz(3),
      primary key (organization_id, id),
      foreign key (organization_id, webhook_id) references incoming_webhooks on delete cascade
    );
    create index incoming_replays_running on incoming_replays (created_at) where status = 'running';
    create index incoming_replays_webhook on incoming_replays (organization_id, webhook_id, id);

    -- Accepted deliveries that carry an id: a sender's retry gets the stored answer and has no effect.
    create table incoming_deliveries (
      organization_id uuid not null,
      webhook_id uuid not null,
      -- SHA-256 of the delivery's id and its body; of the body alone within a dedupe_window
      fingerprint bytea not null,
      -- null only within the transaction that claims it
      answer jsonb,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, webhook_id, fingerprint),
      foreign key (organization_id, webhook_id) references incoming_webhooks on delete cascade
    );
    create index incoming_deliveries_age on incoming_deliveries (created_at);

    -- What a run answers to the sender of the request that started it: the first answer of a run counts. Kept as long as a
    -- delivery, so that the sender's retry gets it too.
    create table incoming_responses (
      organization_id uuid not null,
      run_id uuid not null,
      id uuid not null,
      status integer not null,
      headers jsonb not null,
      content_type text not null,
      body text not null,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, run_id),
      foreign key (organization_id, run_id) references runs on delete cascade
    );
    create index incoming_responses_age on incoming_responses (created_at);

    -- Addresses that failed verification or exceeded the limit. Unlogged: a crash of PostgreSQL resets them.
    create unlogged table incoming_sources (
      organization_id uuid not null,
      webhook_id uuid not null,
      -- an IPv4 address or an IPv6 /64
      source_ip text not null,
      failures integer not null default 0,
      failures_since timestamptz(3) not null default now(),
      breaches integer not null default 0,
      breaches_since timestamptz(3) not null default now(),
      blocked_until timestamptz(3),
      -- the log row into which the requests of the latest block are folded
      block_log_id uuid,
      primary key (organization_id, webhook_id, source_ip),
      foreign key (organization_id, webhook_id) references incoming_webhooks on delete cascade
    );
    create index incoming_sources_age on incoming_sources
      ((greatest(failures_since, breaches_since, blocked_until)));
  `)
  const tables = ['webhooks', 'logs', 'replays', 'deliveries', 'responses', 'sources']
  for (const table of tables) await protect(knex, `incoming_${table}`)
}
