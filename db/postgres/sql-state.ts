/** The SQLSTATE of an error of PostgreSQL: five characters, of which the first two are its class. */
export function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * Whether PostgreSQL refused the data, and will do so again: a wrong value (22), a constraint (23), a limit of the server
 * (54), a function of ours (P0). Other failures may pass: a deadlock, a lost connection, a pending migration.
 */
export const isRefusal = (error: unknown): boolean => /^(22|23|54|P0)/.test(sqlState(error) ?? '')

/** Lost connection (08), deadlock or serialization failure (40), out of resources (53), server shutdown (57P). */
const TRANSIENT = /^(08|40|53|57P)/

const SOCKET_ERROR = /^(ECONNREFUSED|ECONNRESET|EPIPE|ENOTFOUND|ETIMEDOUT|EAI_AGAIN)$/
/** The messages of pg, which has no code for a connection that ends during a statement. */
const CONNECTION_LOST = /Connection terminated|is not queryable/

/** Whether the database cannot be used at the moment; or, of the pool, whether it had no connection left in time. */
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

/** Whether `statement_timeout` ended the statement. */
export const isStatementTimeout = (error: unknown): boolean => sqlState(error) === '57014'
