import type { Knex } from 'knex'
import type pg from 'pg'
import { UUID } from '../../workflows/shared/uuid.ts'
import { Gather, type RowsStatement } from './gather.ts'
import type { SentCounter } from './sent-bytes.ts'

/** The transaction that `work` gets. */
export interface Transaction {
  /**
   * Builds and sends statements on the transaction's connection. Of Knex it has `raw`, `from`, `fn`, `ref` and the
   * call.
   */
  trx: Knex
  /** Declares that the next statement is the last one: COMMIT is sent with it. Later statements throw. */
  last(): void
  /** Sends a statement later: before the next one, together with others that are equal but for their rows. */
  later(statement: RowsStatement): void
}

export type Send = (statement: pg.QueryConfig) => Promise<pg.QueryResult>

export interface TransactionOptions {
  /** A UUID: that of new events and runs (`trace.ts`). */
  traceId?: string | undefined
  /** Refuses statements that change anything. */
  readOnly?: boolean | undefined
  /**
   * Sends COMMIT with the first statement, without waiting for its answer: one round trip in all. A second statement
   * throws.
   */
  oneStatement?: boolean | undefined
  /** SQL that is sent with BEGIN, without parameters. */
  first?: string | undefined
  /** Counts the bytes of its statements that write. */
  sent?: SentCounter | undefined
  /** Called when BEGIN is sent: may send a statement with it, before those of `work`. */
  afterBegin?: ((send: Send) => void) | undefined
}

/**
 * Runs `work` in a transaction in which row-level security shows one organization; without an id, for the system role,
 * it shows all. BEGIN is sent with the first statement, without waiting for its answer; without a statement there is no
 * transaction.
 */
export async function transaction<T>(
  pool: Knex,
  organizationId: string | undefined,
  work: (transaction: Transaction) => Promise<T>,
  { traceId, readOnly, oneStatement, first, afterBegin, sent }: TransactionOptions = {},
): Promise<T> {
  const connection: pg.Client = await pool.client.acquireConnection()
  let lastIsNext = false
  let begun: Promise<unknown> | undefined
  let ended: Promise<pg.QueryResult> | undefined
  /** No statement may come: the connection is, or soon will be, that of another transaction. */
  let isOver = false
  const end = (command: 'COMMIT' | 'ROLLBACK') => {
    isOver = true
    if (ended) return ended
    ended = connection.query(command)
    ended.catch(() => {})
    return ended
  }
  const send = (...statement: Parameters<pg.Client['query']>) => {
    if (!begun) {
      begun = begin(connection, organizationId, { traceId, readOnly, first })
      afterBegin?.((statement) => connection.query(statement))
    }
    sent?.note(statement[0] as unknown as pg.QueryConfig)
    return connection.query(...statement)
  }
  const gather = new Gather(send as unknown as pg.Client['query'])
  const lent = {
    query(...statement: Parameters<pg.Client['query']>) {
      if (isOver) throw new Error('the transaction has ended')
      gather.flush()
      send(...statement)
      if (oneStatement || lastIsNext) end('COMMIT')
    },
  }
  try {
    const last = () => {
      lastIsNext = true
    }
    const later = (statement: RowsStatement) => {
      if (isOver) throw new Error('the transaction has ended')
      gather.add(statement)
    }
    const result = await work({ trx: statementsOn(pool, lent), last, later })
    gather.flush()
    if (!begun) return result
    const committed = end('COMMIT')
    await begun
    const { command } = await committed
    // PostgreSQL answers COMMIT with ROLLBACK if a statement failed, also if its error was ignored.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back')
    sent?.committed()
    return result
  } catch (error) {
    if (begun) await end('ROLLBACK').catch(() => {})
    throw error
  } finally {
    isOver = true
    pool.client.releaseConnection(connection)
  }
}

/** The caller does not await it: if it fails, the connection is lost, and every later statement fails. */
function begin(
  connection: pg.Client,
  organizationId: string | undefined,
  { traceId, readOnly, first }: Pick<TransactionOptions, 'traceId' | 'readOnly' | 'first'>,
): Promise<unknown> {
  const statements = [
    ...(organizationId === undefined ? [] : [setLocal('organization_id', organizationId)]),
    ...(traceId === undefined ? [] : [setLocal('trace_id', traceId)]),
    ...(first === undefined ? [] : [first]),
  ]
  const begun = connection.query([readOnly ? 'BEGIN READ ONLY' : 'BEGIN', ...statements].join('; '))
  begun.catch(() => {})
  return begun
}

function setLocal(name: string, id: string): string {
  // The simple query protocol has no parameters: the check prevents SQL injection.
  if (!UUID.test(id)) throw new Error(`${name} is not a UUID`)
  return `SET LOCAL app.${name} = '${id}'`
}

/**
 * The builders of `pool`, which send their statements on `connection`. Knex's own transactions wait for BEGIN and build a
 * Knex for each: one with a single SELECT takes 2.4 times the time and CPU.
 */
function statementsOn(pool: Knex, connection: object): Knex {
  const table = (name: string) => pool(name).connection(connection)
  const raw = (sql: string, bindings: Knex.RawBinding[]) => pool.raw(sql, bindings).connection(connection)
  const from = (query: Knex.QueryBuilder) => pool.from(query).connection(connection)
  return Object.assign(table, {
    raw,
    from,
    fn: pool.fn,
    ref: (name: string) => pool.ref(name),
  }) as unknown as Knex
}
