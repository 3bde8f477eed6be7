import type { Knex } from 'knex'
import type pg from 'pg'
import { sendTogether } from './dialect.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** One transaction, as its work sees it. */
export interface Transaction {
  /** The pool's Knex, on the transaction's connection. */
  trx: Knex
  /** The next statement is the last one: COMMIT is sent right behind it. One more is refused. */
  last(): void
}

/**
 * Runs `work` in a transaction in which row-level security shows one organization; or, on the pool of the system role,
 * in one that needs none. Knex's own transactions each build
 * a Knex anew and wait for BEGIN; this one lends a connection to the builders, and BEGIN travels with the first
 * statement.
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
    // PostgreSQL's way to say that a statement had failed, whose error somebody dropped.
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

/** Sent, not awaited. Where it fails the connection is lost, and every statement on it fails. */
function begin(connection: pg.Client, organizationId: string | undefined): Promise<unknown> {
  sendTogether(connection)
  const begun = connection.query(organizationId === undefined ? 'BEGIN' : `BEGIN; ${nameIt(organizationId)}`)
  begun.catch(() => {})
  return begun
}

function nameIt(organizationId: string): string {
  // The simple protocol takes no parameters; the shape is checked so that nothing can be injected.
  if (!UUID.test(organizationId)) throw new Error('organizationId is not a UUID')
  return `SELECT set_config('app.organization_id', '${organizationId}', true)`
}

/** The same Knex as `pool`, but that its statements run on this connection; `before` and `after` each is sent. */
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
