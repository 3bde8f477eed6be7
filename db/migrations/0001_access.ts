import type { Knex } from 'knex'
import { DATABASE_ROLES } from '../postgres/roles.ts'
import { protect } from './protect.ts'

/** Database roles, organizations, users with their access, API keys, secrets, limits and idempotency keys. */
export async function up(knex: Knex): Promise<void> {
  for (const role of DATABASE_ROLES) {
    // Roles belong to the whole server: another database, or a concurrent migration, may have created this one.
    await knex.raw(`
      do $$ begin
        create role ${role} nologin;
      exception when duplicate_object or unique_violation then null;
      end $$;
      do $$ begin
        execute format('grant ${role} to %I', current_user);
      exception when unique_violation then null;
      end $$;
      grant usage on schema public to ${role};
    `)
  }

  await knex.raw(`
    create extension if not exists pg_trgm;
    create extension if not exists btree_gin;
    create extension if not exists unaccent;

    create table organizations (
      id uuid primary key,
      name text not null,
      plan text not null check (plan in ('free', 'professional', 'enterprise')),
      -- currency (ISO 4217), timezone, strict_custom_fields, log_retention_days, run_retention_days
      settings jsonb not null default '{}',
      -- what workflows read as env.<name>; apart from the settings, which each request reads
      env jsonb not null default '{}',
      -- overrides of the plan's limits: requests_per_minute, requests_per_minute_per_key, max_running, ...
      limits jsonb not null default '{}',
      -- the worker pools that its workflows may use; only the operator changes them
      pools text[] not null default '{}',
      -- the first one, made by the first start or the first sign-up
      is_operators boolean not null default false,
      -- made by a sign-up: it may mail less in its first days
      signed_up boolean not null default false,
      -- whether it stores as much as its plan allows; see db/storage/usage.ts
      storage_full boolean not null default false,
      created_at timestamptz(3) not null default now()
    );

    -- Addresses that get no mails of workflows.
    create table mail_suppressions (
      -- UUIDv7: ordered by time
      id uuid primary key,
      -- null: for all organizations
      organization_id uuid references organizations on delete cascade,
      -- in lower case
      address text not null,
      reason text not null check (reason in ('unsubscribed', 'bounced', 'complained', 'added')),
      created_at timestamptz(3) not null default now(),
      unique nulls not distinct (organization_id, address)
    );
    create index mail_suppressions_list on mail_suppressions (organization_id, id);

    -- The bytes that an organization stores; a row is made by its first write.
    create table organization_storage (
      organization_id uuid primary key references organizations on delete cascade,
      -- bytes by kind, and their sum, of the last measurement
      measured jsonb not null default '{}',
      total bigint not null default 0,
      measured_at timestamptz(3),
      -- when it may be measured again
      due_at timestamptz(3) not null default now(),
      -- bytes that were sent since the last measurement
      written bigint not null default 0
    );

    create table users (
      id uuid primary key,
      email text not null,
      name text not null,
      -- argon2id, as a PHC string
      password_hash text not null,
      created_at timestamptz(3) not null default now()
    );
    create unique index users_email on users (lower(email));

    create table memberships (
      organization_id uuid not null references organizations on delete cascade,
      user_id uuid not null references users on delete cascade,
      role text not null check (role in ('owner', 'admin', 'member')),
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, user_id)
    );
    create index memberships_user on memberships (user_id);

    create table sessions (
      -- SHA-256 of the cookie's value
      token_hash bytea primary key,
      id uuid not null unique,
      organization_id uuid not null references organizations on delete cascade,
      user_id uuid not null references users on delete cascade,
      -- of the sign-in, so that the user recognises the session
      ip text,
      user_agent text,
      created_at timestamptz(3) not null default now(),
      expires_at timestamptz(3) not null
    );
    create index sessions_organization on sessions (organization_id, user_id);
    -- a user's sessions in all organizations
    create index sessions_user on sessions (user_id);
    create index sessions_age on sessions (expires_at);

    create table invitations (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      email text not null,
      role text not null check (role in ('owner', 'admin', 'member')),
      -- SHA-256 of the token of the link
      token_hash bytea not null unique,
      invited_by uuid,
      created_at timestamptz(3) not null default now(),
      expires_at timestamptz(3) not null,
      primary key (organization_id, id)
    );
    create unique index invitations_email on invitations (organization_id, lower(email));
    create index invitations_age on invitations (expires_at);

    create table password_resets (
      -- the organization whose admin made the link; nil if the user asked for it, hence without a foreign key
      organization_id uuid not null,
      user_id uuid not null references users on delete cascade,
      -- SHA-256 of the token of the link
      token_hash bytea not null unique,
      -- only the user got the link, by mail, and no admin
      mailed boolean not null,
      created_by uuid,
      created_at timestamptz(3) not null default now(),
      expires_at timestamptz(3) not null,
      primary key (organization_id, user_id)
    );
    create index password_resets_age on password_resets (expires_at);

    -- Sign-ups whose address is not confirmed yet: neither an account nor an organization.
    create table sign_ups (
      -- SHA-256 of the token of the link
      token_hash bytea primary key,
      email text not null,
      name text not null,
      organization_name text not null,
      -- null if the address had an account
      password_hash text,
      created_at timestamptz(3) not null default now(),
      expires_at timestamptz(3) not null
    );
    create index sign_ups_age on sign_ups (expires_at);

    -- Mails with the links of invitations, password resets and sign-ups: their own queue.
    create table account_mails (
      -- nil for mails about an account, which belongs to no organization; hence without a foreign key
      organization_id uuid not null,
      -- UUIDv7; the Message-ID is derived from it
      id uuid not null,
      kind text not null
        check (kind in ('invitation', 'password_reset', 'sign_up', 'sign_up_known', 'webhook_disabled',
          'runs_skipped')),
      address text not null,
      -- whose list shows how the mail went
      invitation_id uuid,
      -- what the text says beside the link
      details jsonb not null default '{}',
      -- the token of the link, sealed with SECRETS_KEY; null once there is no further attempt
      sealed text,
      attempts integer not null default 0,
      -- when a relay may send it; while one does, when another may
      due_at timestamptz(3) not null default now(),
      -- why the last attempt failed
      problem text,
      sent_at timestamptz(3),
      -- sent, given up, or not needed any more
      ended_at timestamptz(3),
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index account_mails_due on account_mails (organization_id, due_at) where ended_at is null;
    create index account_mails_invitation on account_mails (organization_id, invitation_id);
    create index account_mails_age on account_mails (created_at);

    -- Who changed the access to the organization or its configuration.
    create table audit_log (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      action text not null,
      actor_type text not null,
      actor_id uuid,
      -- the names at that time
      actor_name text,
      target_id text not null,
      target_name text not null,
      details jsonb not null default '{}',
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index audit_log_target on audit_log (organization_id, target_id, id);

    create table api_keys (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      name text not null,
      -- the first characters: enough to recognise a key, not enough to use it
      prefix text not null,
      -- SHA-256
      hash bytea not null unique,
      -- of the secret before the last rotation, valid until previous_expires_at
      previous_hash bytea unique,
      previous_expires_at timestamptz(3),
      scopes text[] not null,
      ip_allowlist text[] not null default '{}',
      expires_at timestamptz(3),
      revoked_at timestamptz(3),
      last_used_at timestamptz(3),
      created_by uuid,
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );

    -- What workflows read as secrets.<name>.
    create table secrets (
      organization_id uuid not null references organizations on delete cascade,
      name text not null,
      -- sealed with SECRETS_KEY, for this organization and name only
      sealed text not null,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, name)
    );

    -- Fixed windows of limits per minute (requests of a key, attempts to sign in, ...). Unlogged: a crash of PostgreSQL
    -- resets what was used of a window.
    create unlogged table limit_windows (
      -- Without a foreign key: attempts to sign in count before the organization is known, under the nil UUID. Rows go
      -- when their window is over.
      organization_id uuid not null,
      subject text not null,
      window_start timestamptz not null,
      used integer not null,
      ends_at timestamptz not null,
      primary key (organization_id, subject, window_start)
    );
    create index limit_windows_age on limit_windows (ends_at);

    -- The same for limits per calendar month (UTC), which survive a crash: they are what an organization pays for.
    create table limit_months (
      organization_id uuid not null references organizations on delete cascade,
      subject text not null,
      window_start timestamptz not null,
      used integer not null,
      ends_at timestamptz not null,
      primary key (organization_id, subject, window_start)
    );
    create index limit_months_age on limit_months (ends_at);

    create table idempotency_keys (
      organization_id uuid not null references organizations on delete cascade,
      -- the API key or the user of the request: an answer is for nobody else
      caller_id uuid not null,
      method text not null,
      path text not null,
      key text not null,
      -- empty if the body is sealed, together with the hash: it could confirm a guessed secret
      request_hash bytea not null,
      -- of the stored response; null while the first request is in flight
      status integer,
      body text,
      -- instead of the body, if the response has a secret
      body_sealed text,
      headers jsonb not null default '{}',
      -- that the handler required, and that a replay requires again
      scopes text[] not null default '{}',
      locked_until timestamptz(3),
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, caller_id, method, path, key)
    );
    create index idempotency_keys_age on idempotency_keys (created_at);
  `)
  await protect(knex, 'organizations', 'id')
  const tables = ['memberships', 'sessions', 'invitations', 'password_resets', 'audit_log', 'api_keys']
  for (const table of [
    ...tables,
    'account_mails',
    'secrets',
    'limit_windows',
    'limit_months',
    'organization_storage',
    'mail_suppressions',
    'idempotency_keys',
  ])
    await protect(knex, table)
  // Only the operator, by the system role, changes the limits and pools of organizations.
  await knex.raw(`
    revoke update on organizations from agx_app;
    grant update (name, plan, settings, env) on organizations to agx_app`)
  // Organizations cannot change their audit log; only the system role purges it.
  await knex.raw('revoke update, delete on audit_log from agx_app')
  // A user may belong to several organizations, and is visible in each. Only the system role, which signs users in,
  // reads all columns and writes. The policy of memberships limits the sub-select to the organization.
  await knex.raw(`
    alter table users enable row level security;
    alter table users force row level security;
    create policy member on users for select to agx_app
      using (exists (select from memberships m where m.user_id = users.id
        and m.organization_id = (select nullif(current_setting('app.organization_id', true), '')::uuid)));
    create policy system on users to agx_system using (true);
    grant select, insert, update, delete on users to agx_system;
    grant select (id, name, email) on users to agx_app;

    alter table sign_ups enable row level security;
    alter table sign_ups force row level security;
    create policy system on sign_ups to agx_system using (true);
    grant select, insert, update, delete on sign_ups to agx_system;
  `)
}
