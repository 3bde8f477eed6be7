import type { Knex } from 'knex'
import { searchView } from './search-view.ts'

const TABLES = ['contacts', 'companies', 'deals', 'tasks', 'notes', 'activities']

/** Lists read the index of free text through views, which unlike a function can be planned with the rest. */
export async function up(knex: Knex): Promise<void> {
  for (const table of TABLES) {
    await searchView(knex, table)
    await knex.raw(`drop function search_${table}(text[], integer)`)
  }
}

export async function down(): Promise<void> {
  throw new Error('the functions that migration 0002 made for search are gone')
}
