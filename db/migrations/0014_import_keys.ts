import type { Knex } from 'knex'
import { protect } from './protect.ts'

/** What a dry run would have made so far, by what no two records share: for the rows behind it, as in the database. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    create table import_keys (
      organization_id uuid not null,
      import_id uuid not null,
      -- SHA-256 of the field and the value
      key bytea not null,
      -- the record that was made, and undone
      record_id uuid not null,
      primary key (organization_id, import_id, key),
      foreign key (organization_id, import_id) references imports on delete cascade
    )`)
  await protect(knex, 'import_keys')
}

export async function down(knex: Knex): Promise<void> {
  await knex.raw('drop table import_keys')
}
