import type { Knex } from 'knex'
import type pg from 'pg'
import { sendTogether } from './dialect.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The transaction that `work` gets. */
export interface Transaction {
  /** The pool's Knex, on the transaction's connection. */
  trx: Knex
  /** Declares that the next statement is the last one: COMMIT is sent with it. Later statements throw. */
  last(): void
}

/**
 * Runs `work` in a transaction in which row-level security shows one organization; without an id, for the system role,
 * it shows all. A transaction of Knex builds a Knex instance and waits for BEGIN; this one runs the query builders of
 * the pool on one connection, and sends BEGIN together with the first statement.
 */
export async function transaction<T>(
  pool: Knex,
  organizationId: string | undefined,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const connection: pg.Client = await pool.client.acquireConnection()
  let lastIsNext = false
  let committed: Promise<pg.QueryResult> | undefined
  const commit = () => {
    committed ??= connection.query('COMMIT')
    committed.catch(() => {})
    return committed
  }
  try {
    const begun = begin(connection, organizationId)
    const trx = statementsOn(pool, connection, {
      before() {
        if (committed) throw new Error('the transaction has ended')
      },
      after() {
        if (lastIsNext) commit()
      },
    })
    const last = () => {
      lastIsNext = true
    }
    const result = await work({ trx, last })
    await begun
    const { command } = await commit()
    // PostgreSQL answers COMMIT with ROLLBACK if a statement failed, also if its error was ignored.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back')
    return result
  } catch (error) {
    committed ??= connection.query('ROLLBACK')
    await committed.catch(() => {})
    throw error
  } finally {
    pool.client.releaseConnection(connection)
  }
}

/** The caller does not await it: if it fails, the connection is lost, and every later statement fails. */
function begin(connection: pg.Client, organizationId: string | undefined): Promise<unknown> {
  sendTogether(connection)
  const begun = connection.query(organizationId === undefined ? 'BEGIN' : `BEGIN; ${setOrg(organizationId)}`)
  begun.catch(() => {})
  return begun
}

function setOrg(organizationId: string): string {
  // The simple query protocol has no parameters: the check prevents SQL injection.
  if (!UUID.test(organizationId)) throw new Error('organizationId is not a UUID')
  return `SELECT set_config('app.organization_id', '${organizationId}', true)`
}

/** `pool` with all statements on this connection. Calls `before` and `after` around the sending of each statement. */
function statementsOn(
  pool: Knex,
  connection: pg.Client,
  { before, after }: { before(): void; after(): void },
): Knex {
  const client = Object.assign(Object.create(pool.client), {
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    query(...statement: unknown[]) {
      before()
      const answer = pool.client.query(...statement)
      after()
      return answer
    },
  })
  const knex = (table: string, options?: object) => client.queryBuilder().table(table, options)
  // Its members read the client from the context.
  const context = Object.create((pool as Knex & { context: object }).context, { client: { value: client } })
  return Object.assign(Object.setPrototypeOf(knex, pool), { context })
}
