import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Clients of OAuth, the grants that members give them, and the tokens of these. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    -- Clients that registered themselves. Anyone may, so a row has no organization, and expires.
    create table oauth_clients (
      id text primary key,
      name text not null,
      redirect_uris text[] not null,
      created_at timestamptz(3) not null default now(),
      expires_at timestamptz(3) not null
    );
    create index oauth_clients_age on oauth_clients (expires_at);

    -- What a member lets a client do. It ends with the membership.
    create table oauth_grants (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      user_id uuid not null,
      -- of a registered client, or the URL of its metadata document
      client_id text not null,
      client_name text not null,
      scopes text[] not null,
      -- the only service that takes its tokens (RFC 8707)
      resource text not null,
      -- SHA-256 of the authorization code, which works once
      code_hash bytea not null unique,
      -- of PKCE, S256
      code_challenge text not null,
      redirect_uri text not null,
      code_expires_at timestamptz(3) not null,
      -- when it was exchanged; another use revokes the grant
      code_used_at timestamptz(3),
      last_used_at timestamptz(3),
      revoked_at timestamptz(3),
      created_at timestamptz(3) not null default now(),
      -- of the newest refresh token
      expires_at timestamptz(3) not null,
      primary key (organization_id, id),
      foreign key (organization_id, user_id) references memberships on delete cascade
    );
    create index oauth_grants_member on oauth_grants (organization_id, user_id);
    create index oauth_grants_user on oauth_grants (user_id);
    create index oauth_grants_age on oauth_grants (expires_at);

    -- An access token and its refresh token. Each refresh makes another pair.
    create table oauth_tokens (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      grant_id uuid not null,
      -- the pair that was refreshed
      previous uuid,
      -- of the access token: those of the grant, or fewer
      scopes text[] not null,
      -- SHA-256
      access_hash bytea not null unique,
      access_expires_at timestamptz(3) not null,
      access_used_at timestamptz(3),
      -- SHA-256
      refresh_hash bytea not null unique,
      -- when it was refreshed or replaced; another use revokes the grant
      refreshed_at timestamptz(3),
      created_at timestamptz(3) not null default now(),
      -- of the refresh token
      expires_at timestamptz(3) not null,
      primary key (organization_id, id),
      foreign key (organization_id, grant_id) references oauth_grants on delete cascade
    );
    create index oauth_tokens_grant on oauth_tokens (organization_id, grant_id);
    create index oauth_tokens_age on oauth_tokens (expires_at);

    alter table oauth_clients enable row level security;
    alter table oauth_clients force row level security;
    create policy system on oauth_clients to agx_system using (true);
    grant select, insert, update, delete on oauth_clients to agx_system;
  `)
  await protect(knex, 'oauth_grants')
  await protect(knex, 'oauth_tokens')
}
