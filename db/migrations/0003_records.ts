import type { Knex } from 'knex'
import { protect } from './protect.ts'
import { recordTable } from './record-table.ts'
import { sortIndex } from './sort-index.ts'

/** The columns that analytics groups by or adds up, besides the owner. */
const OF_DEALS = ['stage', 'pipeline', 'deal_type', 'source', 'currency', 'amount', 'probability']
const OF_TASKS = ['status', 'priority', 'type', 'assignee_id']
const OF_ACTIVITIES = ['type', 'status', 'direction']

/**
 * The keys of records that were merged into others. The function refuses an external_id that another record has as an
 * alternate key; it runs after the row is written, because a write waits there for a merge that frees the external_id.
 */
const ALTERNATE_KEYS = `
  create table alternate_keys (
    organization_id uuid not null references organizations on delete cascade,
    entity text not null,
    field text not null,
    -- in the form of look-ups: an email in lower case
    key text not null,
    record_id uuid not null,
    primary key (organization_id, entity, field, key, record_id)
  );
  create index alternate_keys_record on alternate_keys (organization_id, record_id);

  create function refuse_alternate_external_id() returns trigger language plpgsql as $$
  declare
    holder uuid;
    is_live boolean;
  begin
    for holder in
      select record_id from alternate_keys
      where organization_id = new.organization_id and entity = tg_table_name and field = 'external_id'
        and key = new.external_id and record_id <> new.id
    loop
      execute format('select exists (select from %I where organization_id = $1 and id = $2 and deleted_at is null)',
                     tg_table_name)
        into is_live using new.organization_id, holder;
      if is_live then
        raise unique_violation using message = 'the external_id is an alternate key of another record';
      end if;
    end loop;
    return null;
  end $$;
`

/**
 * The first six kinds of records, their custom fields, links, history and merges.
 *
 * References to records have no foreign key. `associations`, `record_history`, `merged_records` and
 * `custom_field_values` name the kind in a column, and a foreign key cannot reference one of six tables. `company_id`
 * and similar columns could have one, but its check would lock the other record's row against the lock order of
 * db/records/lock.ts. All tables have a foreign key to `organizations`.
 */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(ALTERNATE_KEYS)
  await protect(knex, 'alternate_keys')
  await recordTable(
    knex,
    'contacts',
    `first_name text, last_name text, email text, phone text, mobile_phone text, job_title text, company_id uuid,
     website text, linkedin_url text, address jsonb, timezone text, lead_source text, lead_status text,
     lifecycle_stage text, do_not_contact boolean not null, last_contacted_at timestamptz(3),
     email_lower text generated always as (lower(email)) stored,
     last_name_lower text collate "und-x-icu" generated always as (lower(last_name)) stored`,
    ['lead_status', 'lifecycle_stage', 'lead_source'],
    [['company_id', 'contacts_company']],
  )
  await recordTable(
    knex,
    'companies',
    `name text not null, domain text, website text, phone text, email text, industry text, description text,
     employee_count integer, annual_revenue numeric, currency text, linkedin_url text, address jsonb, type text,
     lifecycle_stage text, parent_company_id uuid,
     email_lower text generated always as (lower(email)) stored,
     name_lower text collate "und-x-icu" generated always as (lower(name)) stored`,
    ['type', 'lifecycle_stage', 'industry'],
    [['parent_company_id', 'companies_parent']],
  )
  await recordTable(
    knex,
    'deals',
    `name text not null, amount numeric, currency text, pipeline text not null, stage text not null,
     probability integer not null, expected_close_date date, closed_at timestamptz(3), lost_reason text,
     company_id uuid, contact_id uuid, source text, deal_type text`,
    OF_DEALS,
    [
      ['company_id', 'deals_company'],
      ['contact_id', 'deals_contact'],
    ],
  )
  await recordTable(
    knex,
    'tasks',
    `title text not null, body text, status text not null, priority text not null, type text not null,
     due_at timestamptz(3), reminder_at timestamptz(3), completed_at timestamptz(3), assignee_id uuid`,
    OF_TASKS,
    [['assignee_id', 'tasks_assignee']],
  )
  await recordTable(
    knex,
    'notes',
    'title text, body text not null, format text not null, pinned boolean not null, author_id uuid',
    ['format', 'author_id'],
  )
  await recordTable(
    knex,
    'activities',
    `type text not null, subject text, body text, occurred_at timestamptz(3) not null, duration_seconds integer,
     direction text, outcome text, status text not null, location text`,
    OF_ACTIVITIES,
  )
  await sortIndex(knex, 'contacts', 'last_name_lower', { name: 'contacts_last_name' })
  await sortIndex(knex, 'companies', 'name_lower', { name: 'companies_name', nullable: false })
  await sortIndex(knex, 'deals', 'amount')
  await sortIndex(knex, 'deals', 'expected_close_date')
  await sortIndex(knex, 'tasks', 'due_at', { counted: ['owner_id', ...OF_TASKS, 'completed_at'] })
  await sortIndex(knex, 'activities', 'occurred_at', {
    nullable: false,
    counted: ['owner_id', ...OF_ACTIVITIES, 'duration_seconds'],
  })
  await knex.raw(`
    create index contacts_email on contacts (organization_id, email_lower) where deleted_at is null;
    -- For analytics: what was closed or completed in a period, and what is open now. A deal is in one of the first two.
    create index deals_open on deals (organization_id, created_at)
      include (owner_id, ${OF_DEALS.join(', ')}, closed_at) where deleted_at is null and closed_at is null;
    create index deals_closed on deals (organization_id, closed_at)
      include (owner_id, ${OF_DEALS.join(', ')}, created_at) where deleted_at is null and closed_at is not null;
    create index tasks_completed on tasks (organization_id, completed_at)
      include (owner_id, ${OF_TASKS.join(', ')}, created_at) where deleted_at is null and completed_at is not null;
    create index tasks_open on tasks (organization_id, due_at)
      include (owner_id, ${OF_TASKS.join(', ')}, created_at)
      where deleted_at is null and status not in ('done', 'cancelled');
    create index companies_domain on companies (organization_id, domain) where deleted_at is null;

    -- One row per changed version of a record.
    create table record_history (
      organization_id uuid not null references organizations on delete cascade,
      object text not null,
      record_id uuid not null,
      version integer not null,
      action text not null check (action in ('created', 'updated', 'deleted', 'restored', 'merged')),
      -- {"field": {"from": …, "to": …}}
      changes jsonb not null,
      actor jsonb not null,
      at timestamptz(3) not null,
      -- with 'merged': the record that was merged into this one
      merged_from uuid,
      -- the import or the bulk job that made the change
      job_id uuid,
      primary key (organization_id, record_id, version)
    );
    create index record_history_job on record_history (organization_id, job_id, record_id) where job_id is not null;

    -- One row per pair, whichever end made the link: the end with the smaller (entity, id) is a.
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

    -- The record that a merged one went into.
    create table merged_records (
      organization_id uuid not null references organizations on delete cascade,
      -- the one that is gone
      id uuid not null,
      entity text not null,
      -- the one that has its data now; when that is merged too, this follows
      merged_into uuid not null,
      merged_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );
    create index merged_records_into on merged_records (organization_id, merged_into);

    -- All definitions of a kind in one row: a write reads them by the primary key.
    create table custom_field_definitions (
      organization_id uuid not null references organizations on delete cascade,
      entity text not null,
      -- {"name": {"type": …, "required": …, …}}
      definitions jsonb not null,
      primary key (organization_id, entity)
    );

    -- Changes of many records, which workers make in pages.
    create table bulk_jobs (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      -- the kind of the records; of an undo, that of the job or import
      entity text not null,
      action text not null check (action in ('update', 'delete', 'reassign', 'undo')),
      -- the selection, as sent and as parsed; null: of an undo
      query jsonb,
      list_query jsonb,
      -- of an update: the patch, as sent
      data jsonb,
      -- of an undo: the import or bulk job
      undoes uuid,
      total integer not null default 0,
      -- where the listing of the records goes on; no record is changed before all are listed
      listing boolean not null,
      cursor text,
      created_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      -- a worker makes the next page until then
      lease_until timestamptz(3),
      ended_at timestamptz(3),
      -- {"message": …, "hint": …} if it failed: the records could not all be listed, and none was changed
      error jsonb,
      primary key (organization_id, id)
    );
    create index bulk_jobs_open on bulk_jobs (organization_id, created_at, id) where ended_at is null;
    create index bulk_jobs_age on bulk_jobs (ended_at) where ended_at is not null;

    create table bulk_job_items (
      organization_id uuid not null,
      job_id uuid not null,
      entity text not null,
      record_id uuid not null,
      -- the items with a lower number come first
      step integer not null,
      -- 'refused': the record could not be changed; see error
      status text not null default 'pending' check (status in ('pending', 'done', 'refused')),
      error jsonb,
      primary key (organization_id, job_id, record_id),
      foreign key (organization_id, job_id) references bulk_jobs on delete cascade
    );
    create index bulk_job_items_status on bulk_job_items (organization_id, job_id, status, step, record_id desc);

    -- Saved filters, sorts and columns of a list.
    create table views (
      organization_id uuid not null references organizations on delete cascade,
      id uuid not null,
      entity text not null,
      name text not null,
      -- the parameters of the list, as sent
      query jsonb not null,
      fields jsonb,
      -- false: only its author sees it
      shared boolean not null,
      version integer not null default 1,
      created_by jsonb not null,
      updated_by jsonb not null,
      created_at timestamptz(3) not null default now(),
      updated_at timestamptz(3) not null default now(),
      primary key (organization_id, id)
    );

    -- One row for each value of a unique custom field; a deleted record holds none.
    create table custom_field_values (
      organization_id uuid not null references organizations on delete cascade,
      entity text not null,
      name text not null,
      -- see db/records/custom-fields/unique.ts
      value_key text not null,
      record_id uuid not null,
      primary key (organization_id, entity, name, value_key)
    );
    create index custom_field_values_record on custom_field_values (organization_id, record_id);

    -- Reads the definitions of a kind and locks them until the transaction ends: shared by writes of records, alone for
    -- changes of definitions. A function, because its second statement sees what was committed while the first waited.
    create function custom_field_rules(
      of_organization uuid, of_entity text, alone boolean, out definitions jsonb, out is_strict boolean
    ) language plpgsql volatile as $$
    declare
      lock bigint := hashtextextended(of_organization || ' custom fields of ' || of_entity, 0);
    begin
      if alone then
        perform pg_advisory_xact_lock(lock);
      else
        perform pg_advisory_xact_lock_shared(lock);
      end if;
      select d.definitions, coalesce(o.settings -> 'strict_custom_fields' = 'true', false)
        into definitions, is_strict
        from organizations o
        left join custom_field_definitions d on d.organization_id = o.id and d.entity = of_entity
        where o.id = of_organization;
    end $$;
  `)
  for (const table of [
    'record_history',
    'associations',
    'merged_records',
    'custom_field_definitions',
    'custom_field_values',
    'bulk_jobs',
    'bulk_job_items',
    'views',
  ])
    await protect(knex, table)
}
