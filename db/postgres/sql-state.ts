/** The SQLSTATE of an error of PostgreSQL: five characters, of which the first two are its class. */
export function sqlState(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/**
 * Whether PostgreSQL refused the data, as it will again: a wrong value (22), a constraint (23), a limit of the server
 * (54), a function of ours (P0). What else it fails with may pass: a deadlock, a lost connection, a migration to come.
 */
export const isRefusal = (error: unknown): boolean => /^(22|23|54|P0)/.test(sqlState(error) ?? '')
