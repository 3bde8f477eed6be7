import type { Knex } from 'knex'

/** The kinds of records at that time. */
const KINDS = ['contacts', 'companies', 'deals', 'tasks', 'notes', 'activities']

export const config = { transaction: false }

const PHONES = [
  ['contacts', 'phone'],
  ['contacts', 'mobile_phone'],
  ['companies', 'phone'],
]

/** Indexes for the lists of deleted records, and for records with the same phone. */
export async function up(knex: Knex): Promise<void> {
  for (const table of KINDS)
    await knex.raw(`
      create index concurrently ${table}_restorable on ${table} (organization_id, created_at desc, id desc)
        where deleted_at is not null`)
  for (const [table, column] of PHONES)
    await knex.raw(`
      create index concurrently ${table}_${column} on ${table} (organization_id, ${column})
        where deleted_at is null and ${column} is not null`)
}
