import type { Knex } from 'knex'

/**
 * Creates an index while others write, unless it exists. A build that was cancelled leaves an invalid index, which serves
 * no query, costs every write, and has the name: it is dropped first. Not in a transaction.
 */
export async function concurrentIndex(knex: Knex, name: string, on: string): Promise<void> {
  const { rows } = await knex.raw(
    'select from pg_index where indexrelid = to_regclass(?) and not indisvalid',
    [name],
  )
  if (rows.length > 0) await knex.raw(`drop index concurrently ${name}`)
  await knex.raw(`create index concurrently if not exists ${name} on ${on}`)
}
