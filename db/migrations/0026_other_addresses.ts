import type { Knex } from 'knex'
import { searchView } from './search-view.ts'

/** Further email addresses and phone numbers of contacts; look-ups find them in `alternate_keys`. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    alter table contacts
      add column other_emails text[] not null default '{}',
      add column other_phones text[] not null default '{}'`)
  await searchView(knex, 'contacts')
}
