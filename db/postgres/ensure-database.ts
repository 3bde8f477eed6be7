import pg from 'pg'

/** Creates the database `agx` if the server lacks it. `url`: that of the database, with a login that may create it. */
export async function ensureDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url.replace(/agx$/, 'postgres') })
  await client.connect()
  try {
    const { rowCount } = await client.query("select from pg_database where datname = 'agx'")
    if (!rowCount) await client.query('create database agx')
  } finally {
    await client.end()
  }
}
