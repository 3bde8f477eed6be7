/** The SQLSTATE of a PostgreSQL error: five characters; the first two are its class. */
export function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** A value that a unique index has already. */
export const UNIQUE_VIOLATION = '23505'

/**
 * Whether PostgreSQL refused the data permanently: a data exception (22), a constraint (23), a program limit (54), one
 * of our functions (P0). Other failures may be transient: a deadlock, a lost connection, a pending migration.
 */
export const isRefusal = (error: unknown): boolean => /^(22|23|54|P0)/.test(sqlState(error) ?? '')

/**
 * Lost connection (08), refused login (28: its password was just changed), deadlock or serialization failure (40), out of
 * resources (53), server shutdown (57P).
 */
const TRANSIENT = /^(08|28|40|53|57P)/

const SOCKET_ERROR =
  /^(ECONNREFUSED|ECONNRESET|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|EPIPE|ENOTFOUND|ETIMEDOUT|EAI_AGAIN)$/
/** Messages of pg for a connection that ends during a statement or is not made in time; they have no code. */
const CONNECTION_LOST = /Connection terminated|is not queryable|^timeout expired$/

/** Whether the database is temporarily unavailable, or the pool had no free connection in time. */
export function isDatabaseUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = String((error as { code?: unknown }).code ?? '')
  return (
    TRANSIENT.test(code) ||
    SOCKET_ERROR.test(code) ||
    CONNECTION_LOST.test(error.message) ||
    error.name === 'KnexTimeoutError'
  )
}

/** Whether the transaction conflicted with another: deadlock, serialization failure (40), lock timeout (55P03). */
export const isConflict = (error: unknown): boolean => /^(40|55P03)/.test(sqlState(error) ?? '')

/** Whether `statement_timeout` ended the statement. */
export const isStatementTimeout = (error: unknown): boolean => sqlState(error) === '57014'
