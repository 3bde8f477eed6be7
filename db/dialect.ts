import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
// Knex has no public hook for either of the two things done here.
import PostgresTransaction from 'knex/lib/dialects/postgres/execution/pg-transaction.js'
import PostgresClient from 'knex/lib/dialects/postgres/index.js'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Longer statements are mostly batches of one size, not worth a prepared statement. */
const MAX_PREPARED_LENGTH = 8_000
/** A server keeps every named statement of a connection: bound them, for list queries vary without end. */
const MAX_PREPARED = 500

/** Statement names by pool. Knex makes transaction clients without running constructors, hence not a field. */
const statementNames = new WeakMap<object, Map<string, string>>()

/**
 * Knex's PostgreSQL dialect with prepared statements, and with transactions that name their organization in the
 * same round trip as BEGIN, so that row-level security costs no round trip of its own.
 */
export class Dialect extends PostgresClient {
  override transaction(container: unknown, config: { organizationId?: string } | undefined, outer: unknown) {
    return new TenantTransaction(this, container, config, outer)
  }

  override _query(connection: unknown, query: { sql: string; bindings?: unknown[]; options?: object }) {
    const name = query.bindings?.length ? this.statementName(query.sql) : undefined
    if (name) query.options = { ...query.options, name }
    sendTogether(connection as Connection)
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

interface Connection {
  connection: { stream: Socket }
}

/** What is sent before control goes back to the event loop travels in one packet: BEGIN and the first statement. */
function sendTogether({ connection: { stream } }: Connection): void {
  if (stream.writableCorked > 0) return
  stream.cork()
  process.nextTick(() => stream.uncork())
}

class TenantTransaction extends PostgresTransaction {
  private readonly organizationId: string | undefined

  constructor(
    client: unknown,
    container: unknown,
    config: { organizationId?: string } | undefined,
    outer: unknown,
  ) {
    super(client, container, config, outer)
    this.organizationId = config?.organizationId
  }

  /**
   * Sent, not awaited: on a pipelining connection it travels with the first statement. Where it fails, the connection
   * is lost: Knex rejects the transaction, and every statement on the connection fails with it.
   */
  override begin(connection: unknown) {
    if (this.organizationId === undefined) return super.begin(connection)
    // The simple protocol takes no parameters; the shape is checked so that nothing can be injected.
    if (!UUID.test(this.organizationId)) throw new Error('organizationId is not a UUID')
    void this.query(
      connection,
      `BEGIN; SELECT set_config('app.organization_id', '${this.organizationId}', true)`,
    )
    return Promise.resolve()
  }

  /** Likewise: where it fails the transaction has failed, and so does every statement after it. */
  override savepoint(connection: unknown) {
    void super.savepoint(connection)
    return Promise.resolve()
  }
}
