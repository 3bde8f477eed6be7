import pg from 'pg'

/** Connects to PostgreSQL once, without a pool. Throws the driver's error, within `timeoutMs`. */
export async function tryConnect(url: string, timeoutMs: number): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs })
  try {
    await client.connect()
  } finally {
    await client.end().catch(() => {})
  }
}
