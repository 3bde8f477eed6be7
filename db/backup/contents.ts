import knex, { type Knex } from 'knex'

/** What a table holds of one organization; null: rows that belong to none, such as users. */
export interface Contents {
  table: string
  organization: string | null
  rows: number
  /** Covers all columns but the generated ones, whatever the order of the rows. */
  checksum: string
}

/** One moment of a database. */
export interface Snapshot {
  /** With it another connection, such as that of pg_dump, sees the same moment while this one is open. */
  id: string
  contents(): AsyncGenerator<Contents>
}

/** Reads the database at `url` as of one moment. The login is the owner's, who sees the rows of all organizations. */
export const readSnapshot = <T>(url: string, work: (snapshot: Snapshot) => Promise<T>): Promise<T> =>
  connected(url, (db) =>
    db.transaction(
      async (trx) => {
        const { rows } = await trx.raw<{ rows: { id: string }[] }>('select pg_export_snapshot() as id')
        return work({ id: rows[0]!.id, contents: () => contentsOf(trx) })
      },
      { isolationLevel: 'repeatable read', readOnly: true },
    ),
  )

/** Whether the database at `url` has an organization, which a restore would replace. */
export const hasContents = (url: string): Promise<boolean> =>
  connected(url, async (db) => (await db('organizations').first('id')) !== undefined)

async function connected<T>(url: string, work: (db: Knex) => Promise<T>): Promise<T> {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 1 } })
  try {
    return await work(db)
  } finally {
    await db.destroy()
  }
}

/**
 * The contents of all tables. The checksums of equal rows are equal on every version of PostgreSQL, if the tables have
 * the same columns: of databases with the same migrations.
 */
async function* contentsOf(trx: Knex.Transaction): AsyncGenerator<Contents> {
  // What the text of a value depends on.
  await trx.raw("set local timezone = 'UTC'; set local datestyle = 'ISO'; set local bytea_output = 'hex'")
  for (const { table, columns, organization } of await tables(trx)) {
    const { rows } = await trx.raw<{
      rows: { organization: string | null; rows: string; checksum: string }[]
    }>(
      `select ${organization ?? 'null'}::text as organization, count(*) as rows,
         sum(('x' || left(md5(row(${columns.join(', ')})::text), 15))::bit(60)::bigint)::text as checksum
       from ${table} group by 1 order by 1`,
    )
    for (const row of rows) if (row.checksum !== null) yield { table, ...row, rows: Number(row.rows) }
  }
}

/** The tables of the schema, their columns, and the column that names the organization of a row; quoted. */
async function tables(trx: Knex.Transaction) {
  const { rows } = await trx.raw<{
    rows: { table: string; columns: string[]; organization: string | null }[]
  }>(
    `select format('%I', c.relname) as table,
       array_agg(format('%I', a.attname) order by a.attnum) filter (where a.attgenerated = '') as columns,
       min(a.attname) filter (where a.attname = case c.relname when 'organizations' then 'id' else 'organization_id' end)
         as organization
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
     group by c.oid, c.relname order by c.relname`,
  )
  return rows
}
