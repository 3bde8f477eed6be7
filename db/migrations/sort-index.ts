import type { Knex } from 'knex'

/**
 * Creates the indexes for lists that are sorted by `column`, then by id. Nulls are last in both directions, which no
 * single index supports: one index has the records with a value and is read from either end; the other has the records
 * without a value, by id. A record is in one of the two, so it costs as much to write as a single index. `counted`:
 * further columns that it includes for analytics.
 */
export async function sortIndex(
  knex: Knex,
  table: string,
  column: string,
  { name = `${table}_${column}`, nullable = true, counted = [] as string[] } = {},
): Promise<void> {
  const include = counted.length > 0 ? `include (${counted.join(', ')})` : ''
  await knex.raw(`
    create index ${name} on ${table} (organization_id, ${column}, id) ${include}
      where deleted_at is null ${nullable ? `and ${column} is not null` : ''}`)
  if (nullable)
    await knex.raw(`
      create index ${name}_null on ${table} (organization_id, id) where deleted_at is null and ${column} is null`)
}
