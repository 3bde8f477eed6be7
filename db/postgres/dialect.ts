import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
// An internal class: Knex has no public hook for prepared statements or for corking.
import PostgresClient from 'knex/lib/dialects/postgres/index.js'
import type pg from 'pg'

/** Longer statements are mostly batches of one size, not worth a prepared statement. */
const MAX_PREPARED_LENGTH = 8_000
/** The server keeps every named statement of a connection, and the texts of list queries vary without limit. */
const MAX_PREPARED = 500

/** The SQLSTATE. */
const CONNECTION_FAILURE = '08006'

/** Statement names by pool. Knex makes transaction clients without running constructors, hence not a field. */
const statementNames = new WeakMap<object, Map<string, string>>()

/**
 * Options of a statement whose best plan depends on its values: it is not prepared, because after a few
 * executions PostgreSQL would use a generic plan.
 */
export const PLANNED_ANEW = { plan: 'anew' } as const

/** What the dialect reads of the configuration, besides what Knex reads. */
export interface DialectConfig {
  /** Whether PostgreSQL hangs: then work fails at once instead of waiting for a connection. */
  hangs(): boolean
}

/** Knex's PostgreSQL dialect with prepared statements, sent in as few packets as can be. */
export class Dialect extends PostgresClient {
  override async acquireConnection() {
    if ((this.config as DialectConfig).hangs())
      throw Object.assign(new Error('PostgreSQL does not respond'), { code: CONNECTION_FAILURE })
    return super.acquireConnection()
  }

  override _query(
    connection: unknown,
    query: { sql: string; bindings?: unknown[]; options?: { plan?: 'anew'; name?: string } },
  ) {
    const isPrepared = query.bindings?.length && query.options?.plan !== 'anew'
    const name = isPrepared ? this.statementName(query.sql) : undefined
    if (name) query.options = { ...query.options, name }
    sendTogether(connection as pg.Client)
    return super._query(connection, query)
  }

  private statementName(sql: string): string | undefined {
    if (sql.length > MAX_PREPARED_LENGTH) return undefined
    const names = statementNames.get(this.config) ?? new Map<string, string>()
    statementNames.set(this.config, names)
    let name = names.get(sql)
    if (!name && names.size < MAX_PREPARED) {
      name = createHash('sha1').update(sql).digest('base64url')
      names.set(sql, name)
    }
    return name
  }
}

/** Sends all statements of one turn of the event loop in one packet, such as BEGIN and the first statement. */
export function sendTogether(client: pg.Client): void {
  // Not in the types of pg.
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
  if (stream.writableCorked > 0) return
  stream.cork()
  process.nextTick(() => stream.uncork())
}
