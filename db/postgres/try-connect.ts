import pg from 'pg'

/** Connects to PostgreSQL once, outside of any pool. Throws what the driver threw, within `timeoutMs`. */
export async function tryConnect(url: string, timeoutMs: number): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs })
  try {
    await client.connect()
  } finally {
    await client.end().catch(() => {})
  }
}
