import type pg from 'pg'

/** The tables with the state of a run that waits. */
const TABLES = ['run_nodes', 'run_segments', 'run_waits']

/** Inserts `count` copies of a run that waits, as the owner of the tables: of their workflows Temporal has none. */
export async function copyRun(client: pg.Client, id: string, count: number): Promise<void> {
  await client.query('begin')
  // No trigger counts or wakes anything.
  await client.query("set local session_replication_role = 'replica'")
  await client.query(
    'create temporary table copies on commit drop as select gen_random_uuid() as id from generate_series(1, $1::integer)',
    [count],
  )
  for (const table of ['runs', ...TABLES]) {
    const { rows } = await client.query(
      `select column_name as name from information_schema.columns
       where table_schema = 'public' and table_name = $1 and is_generated = 'NEVER'`,
      [table],
    )
    const own = table === 'runs' ? 'id' : 'run_id'
    const values = rows.map(({ name }) => {
      if (name === own) return 'c.id'
      return table === 'run_waits' && name === 'id' ? 'gen_random_uuid()' : `t."${name}"`
    })
    await client.query(
      `insert into ${table} (${rows.map(({ name }) => `"${name}"`).join(', ')})
       select ${values.join(', ')} from ${table} t, copies c where t.${own} = $1`,
      [id],
    )
  }
  await client.query('commit')
  await client.query('analyze')
}
