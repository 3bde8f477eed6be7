import type pg from 'pg'
import { fillEveryTable, type TenantTable, tenantTables } from '../../support/every-table.ts'
import type { Family, Tally } from '../family.ts'

/** SQLSTATE of a refused privilege or policy. */
const REFUSED = '42501'

/** What neither role may do: change the schema or its protection, leave the database, become somebody else. */
const PRIVILEGES = [
  'drop table contacts',
  'alter table contacts disable row level security',
  'alter table contacts no force row level security',
  'create policy everything on contacts using (true)',
  'alter table contacts add column attacked text',
  'create table attacked (a integer)',
  'create function attacked() returns integer language sql as $$ select 1 $$',
  'truncate contacts',
  'delete from agx_migrations',
  'create role attacked superuser',
  'alter role agx_app bypassrls',
  'select rolpassword from pg_authid',
  "select pg_read_file('/etc/passwd')",
  "copy (select 1) to program 'id'",
  "copy (select 1) to '/tmp/attacked'",
  "select lo_import('/etc/passwd')",
  'create extension dblink',
  'alter system set log_statement = all',
  "alter database postgres set work_mem = '1GB'",
]

/** Statements as the roles of the api and the worker, without the api before them. */
export const rowSecurity: Family = {
  name: 'row-security',
  title: 'statements as the logins of the database',
  run: ({ asOwner }, tally) =>
    asOwner(async (client) => {
      // Rolled back in the end: the stack must not find rows that were made from the catalogue.
      await client.query('begin')
      const mine = await fillEveryTable(client)
      const other = await fillEveryTable(client)
      const tables = await tenantTables(client)
      await client.query('set local role agx_app')
      for (const organization of ['', mine]) {
        await client.query("select set_config('app.organization_id', $1, true)", [organization])
        for (const table of tables) await rowsOfOther(client, tally, table, other)
      }
      for (const role of ['agx_app', 'agx_system']) {
        await client.query(`reset role; set local role ${role}`)
        for (const statement of PRIVILEGES) {
          const outcome = await tried(client, statement)
          tally.attempt(typeof outcome === 'string', `${role}: ${statement}: ${outcome}`)
        }
      }
      await client.query('rollback')
    }),
}

/** Reads and writes the rows of an organization as another one. */
async function rowsOfOther(
  client: pg.Client,
  tally: Tally,
  { name, isView, organizationColumn: column, columns }: TenantTable,
  other: string,
): Promise<void> {
  const written = name === 'organizations' ? 'name' : column
  const list = isView ? column : columns.join(', ')
  const statements = [
    `select from ${name} where ${column} = $1`,
    `select from ${name} t where t::text like '%' || $1 || '%'`,
    `update ${name} set ${written} = ${written} where ${column} = $1`,
    `delete from ${name} where ${column} = $1`,
    `insert into ${name} (${list}) select ${list} from jsonb_populate_record(null::${name}, jsonb_build_object('${column}', $1::text))`,
    ...(isView || name === 'organizations' ? [] : [`update ${name} set ${column} = $1`]),
  ]
  for (const statement of statements) {
    const outcome = await tried(client, statement, [other])
    tally.attempt(outcome === 'refused' || outcome === 0, `agx_app: ${statement}: ${outcome}`)
  }
}

/** The number of rows of a statement, which is undone; `refused`, or the error. */
async function tried(client: pg.Client, statement: string, values: unknown[] = []): Promise<number | string> {
  await client.query('savepoint attempt')
  try {
    return (await client.query(statement, values)).rowCount ?? 0
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return code === REFUSED ? 'refused' : `${code} ${message}`
  } finally {
    await client.query('rollback to savepoint attempt')
  }
}
