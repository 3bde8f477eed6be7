import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** A table of records: the given columns, those that every kind has, its indexes and its search function. */
export async function recordTable(knex: Knex, table: string, columns: string): Promise<void> {
  await knex.raw(`
    create table ${table} (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      ${columns},
      external_id text,
      owner_id uuid,
      tags text[] not null,
      custom_fields jsonb not null,
      version integer not null,
      created_at timestamptz(3) not null,
      updated_at timestamptz(3) not null,
      created_by jsonb not null,
      updated_by jsonb not null,
      deleted_at timestamptz(3),
      -- see db/records/model/search-text.ts
      search_text text not null,
      primary key (organization_id, id)
    );
    create unique index ${table}_external_id on ${table} (organization_id, external_id) where deleted_at is null;
    create index ${table}_recent on ${table} (organization_id, created_at desc, id desc) where deleted_at is null;
    create index ${table}_search on ${table} using gin (organization_id, search_text gin_trgm_ops)
      where deleted_at is null;
  `)
  await protect(knex, table)
  // LIKE is not leakproof, so behind row-level security it is never answered from the index. This function is, for
  // it runs as the system role, whose policy is always true; it sees the one organization that the setting names.
  await knex.raw(`
    create function search_${table}(patterns text[], at_most integer) returns setof uuid
    language plpgsql stable security definer set search_path = public, pg_temp as $$
    begin
      return query execute
        'select id from ${table} where organization_id = $1 and deleted_at is null' || (
          select string_agg(format(' and search_text like %L', pattern), '') from unnest(patterns) pattern
        ) || ' limit $2'
        using nullif(current_setting('app.organization_id', true), '')::uuid, at_most;
    end $$;
    revoke execute on function search_${table}(text[], integer) from public;
    grant execute on function search_${table}(text[], integer) to agx_app, agx_system;
    grant create on schema public to agx_system;
    alter function search_${table}(text[], integer) owner to agx_system;
    revoke create on schema public from agx_system;
  `)
}

/** Drops the table and its search function. */
export async function dropRecordTable(knex: Knex, table: string): Promise<void> {
  await knex.raw(`drop function search_${table}(text[], integer); drop table ${table};`)
}
