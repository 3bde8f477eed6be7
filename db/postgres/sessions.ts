import pg from 'pg'
import { ConfigError } from '../model/config-error.ts'
import type { DatabaseUrls } from './roles.ts'

/**
 * Refuses a pooler that gives each transaction another session of PostgreSQL: prepared statements, SET and LISTEN, which
 * the service uses, belong to a session.
 */

const TIMEOUT_MS = 10_000
/** Another client of the pooler may take the session that was just released. */
const TRIES = 5

/** Throws ConfigError for a URL that leads to a pooler in transaction mode. Throws if PostgreSQL does not answer. */
export async function requireSessions({ url, systemUrl }: DatabaseUrls): Promise<void> {
  const urls = { DATABASE_URL: url, ...(systemUrl !== undefined && { DATABASE_SYSTEM_URL: systemUrl }) }
  for (const [variable, one] of Object.entries(urls))
    if (await sharesSessions(one))
      throw new ConfigError(
        `${variable} leads to a pooler in transaction mode, which keeps no sessions (prepared statements, SET, LISTEN): give the URL of PostgreSQL itself, or set pool_mode = session`,
      )
}

async function sharesSessions(connectionString: string): Promise<boolean> {
  const options = { connectionString, connectionTimeoutMillis: TIMEOUT_MS, query_timeout: TIMEOUT_MS }
  const [first, second] = [new pg.Client(options), new pg.Client(options)]
  for (const client of [first, second]) client.on('error', () => {})
  try {
    await first.connect()
    // PostgreSQL tells its own process id when a connection begins; a pooler tells another number.
    if ((await sessionOf(first)) === (first as unknown as { processID: number }).processID) return false
    await second.connect()
    for (let tries = 0; tries < TRIES; tries++) {
      const before = await sessionOf(first)
      // The first one is still connected: only a pooler gives its session to another client.
      if ((await sessionOf(second)) === before) return true
    }
    return false
  } finally {
    await Promise.all([first, second].map((client) => client.end().catch(() => {})))
  }
}

async function sessionOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ id: number }>('select pg_backend_pid() as id')
  return rows[0]!.id
}
