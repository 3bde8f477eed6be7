import type { Knex } from 'knex'
import { protect } from './protect.ts'
import { searchView } from './search-view.ts'

/** A column that holds the id of another record or of a user, and its index. */
type Reference = [column: string, index: string]

/**
 * Creates the table of a record kind: its own `columns`, the columns and indexes of every kind, an index for each of
 * its `references`, and its search view. No column's definition contains a comma. `counted`: the columns that analytics
 * groups by or adds up; the index on the creation time includes them, so that counts do not read the table.
 *
 * `external_id_lower` and similar columns: lower() is not leakproof, so behind row-level security no index serves a
 * condition with it, but an index on a column does. A row with `deleted_at` is deleted, and purged after 30 days unless
 * restored. `search_text`: the normalized text of full-text search, see db/model/records/search-text.ts.
 */
export async function recordTable(
  knex: Knex,
  table: string,
  columns: string,
  counted: string[],
  references: Reference[] = [],
): Promise<void> {
  const all = `
    ${columns},
    external_id text,
    external_id_lower text generated always as (lower(external_id)) stored,
    owner_id uuid,
    tags text[] not null,
    custom_fields jsonb not null,
    alternate_keys jsonb not null default '[]',
    version integer not null,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    created_by jsonb not null,
    updated_by jsonb not null,
    search_text text not null`.split(',')
  await withStatistics(knex, table)
  await knex.raw(`
    alter table ${table}
      ${all.map((column) => `add column ${column}`).join(',')},
      add primary key (organization_id, id),
      add foreign key (organization_id) references organizations on delete cascade;
    create unique index ${table}_external_id on ${table} (organization_id, external_id) where deleted_at is null;
    create index ${table}_external_id_lower on ${table} (organization_id, external_id_lower)
      where deleted_at is null and external_id_lower is not null;
    create index ${table}_recent on ${table} (organization_id, created_at desc, id desc)
      include (owner_id, ${counted.join(', ')}) where deleted_at is null;
    create index ${table}_changed on ${table} (organization_id, updated_at desc, id desc) where deleted_at is null;
    create index ${table}_search on ${table} using gin (organization_id, search_text gin_trgm_ops)
      where deleted_at is null;
    create index ${table}_deleted on ${table} (deleted_at) where deleted_at is not null;
  `)
  // Each index has the default order of lists, so that the first page of a company's contacts does not read all of
  // them.
  for (const [column, index] of [...references, ['owner_id', `${table}_owner`] satisfies Reference])
    await knex.raw(`
      create index ${index} on ${table} (organization_id, ${column}, created_at desc, id desc)
        where deleted_at is null and ${column} is not null`)
  await knex.raw(`
    /* online: the table is new */ create trigger ${table}_external_id_insert after insert on ${table} for each row
      when (new.external_id is not null and new.deleted_at is null)
      execute function refuse_alternate_external_id();
    /* online: the table is new */ create trigger ${table}_external_id_update after update on ${table} for each row
      when (new.external_id is not null and new.deleted_at is null and
            (new.external_id is distinct from old.external_id or old.deleted_at is not null))
      execute function refuse_alternate_external_id();`)
  await protect(knex, table)
  await searchView(knex, table)
}

/**
 * Creates the empty table with statistics of its first columns: many records per organization, none of them deleted.
 * Without statistics the planner assumes that one row in 200 matches `deleted_at is null`, and that all indexes of the
 * table are equally good. Until the first ANALYZE, which autovacuum starts after a minute, each look-up by email then
 * read all contacts of the organization.
 */
async function withStatistics(knex: Knex, table: string): Promise<void> {
  await knex.raw(`
    create table ${table} (organization_id uuid not null, id uuid not null, deleted_at timestamptz(3));
    insert into ${table} select '00000000-0000-0000-0000-000000000000', gen_random_uuid() from generate_series(1, 100);
    analyze ${table};
    /* online: the table is new */ truncate ${table};
  `)
}
