import type { Knex } from 'knex'
import { searchView } from './search-view.ts'

const TABLES = ['contacts', 'companies', 'deals', 'tasks', 'notes', 'activities']

/** Other systems look records up by their own ids, and filters compare without regard to case. */
export async function up(knex: Knex): Promise<void> {
  for (const table of TABLES) {
    await knex.raw(`
      alter table ${table} add column external_id_lower text generated always as (lower(external_id)) stored;
      create index ${table}_external_id_lower on ${table} (organization_id, external_id_lower)
        where deleted_at is null and external_id_lower is not null;
    `)
    await searchView(knex, table)
  }
}

export async function down(): Promise<void> {
  throw new Error('the views of search hold on to the columns that this migration made')
}
