import type { Knex } from 'knex'
import { kindNames } from '../model/records/kinds/index.ts'

export const config = { transaction: false }

const PHONES = [
  ['contacts', 'phone'],
  ['contacts', 'mobile_phone'],
  ['companies', 'phone'],
]

/** Indexes for the lists of deleted records, and for records with the same phone. */
export async function up(knex: Knex): Promise<void> {
  for (const table of kindNames)
    await knex.raw(`
      create index concurrently ${table}_restorable on ${table} (organization_id, created_at desc, id desc)
        where deleted_at is not null`)
  for (const [table, column] of PHONES)
    await knex.raw(`
      create index concurrently ${table}_${column} on ${table} (organization_id, ${column})
        where deleted_at is null and ${column} is not null`)
}
