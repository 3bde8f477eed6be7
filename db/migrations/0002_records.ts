import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** Contacts, companies, their history and their links. */
export async function up(knex: Knex): Promise<void> {
  await recordTable(
    knex,
    'contacts',
    `first_name text, last_name text, email text, phone text, mobile_phone text, job_title text, company_id uuid,
     website text, linkedin_url text, address jsonb, timezone text, lead_source text, lead_status text,
     lifecycle_stage text, do_not_contact boolean not null, last_contacted_at timestamptz(3),
     -- lower() in a condition hides an index behind row-level security, for it is not leakproof; a column does not
     email_lower text generated always as (lower(email)) stored`,
  )
  await recordTable(
    knex,
    'companies',
    `name text not null, domain text, website text, phone text, email text, industry text, description text,
     employee_count integer, annual_revenue numeric, currency text, linkedin_url text, address jsonb, type text,
     lifecycle_stage text, parent_company_id uuid,
     email_lower text generated always as (lower(email)) stored,
     name_lower text generated always as (lower(name)) stored`,
  )
  await knex.raw(`
    create index contacts_email on contacts (organization_id, email_lower) where deleted_at is null;
    create index contacts_company on contacts (organization_id, company_id) where deleted_at is null;
    create index companies_domain on companies (organization_id, domain) where deleted_at is null;
    create index companies_name on companies (organization_id, name_lower) where deleted_at is null;
    create index companies_parent on companies (organization_id, parent_company_id) where deleted_at is null;

    create table record_history (
      organization_id uuid not null references organizations on delete cascade,
      object text not null,
      record_id uuid not null,
      version integer not null,
      action text not null check (action in ('created', 'updated', 'deleted', 'restored')),
      -- {"field": {"from": …, "to": …}}
      changes jsonb not null,
      actor jsonb not null,
      at timestamptz(3) not null,
      primary key (organization_id, record_id, version)
    );

    -- One row for a pair, whichever end made it: the end with the smaller (entity, id) is a.
    create table associations (
      organization_id uuid not null references organizations on delete cascade,
      a_entity text not null,
      a_id uuid not null,
      b_entity text not null,
      b_id uuid not null,
      label text,
      properties jsonb not null default '{}',
      created_at timestamptz(3) not null default now(),
      primary key (organization_id, a_id, b_entity, b_id)
    );
    create index associations_b on associations (organization_id, b_id, a_entity, a_id);
  `)
  await protect(knex, 'record_history')
  await protect(knex, 'associations')
}

async function recordTable(knex: Knex, table: string, columns: string): Promise<void> {
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
      -- all that q finds, lower-cased and without accents, words separated by single spaces, one in front;
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

export async function down(knex: Knex): Promise<void> {
  await knex.raw(`
    drop function search_contacts(text[], integer);
    drop function search_companies(text[], integer);
    drop table associations, record_history, contacts, companies;
  `)
}
