import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { v7 as uuidv7 } from 'uuid'

/** A table or view that holds rows of organizations, as the catalogue describes it. */
export interface TenantTable {
  name: string
  isView: boolean
  /** Whether row-level security is enabled, and forced on the owner too. */
  isProtected: boolean
  /** The column with the organization's id: `organization_id`; `id` of `organizations`. */
  organizationColumn: string
  /** The columns that are not generated. */
  columns: string[]
}

interface Column {
  name: string
  type: string
  /** Must be set: it is not null, and has no default and no generated value. */
  required: boolean
  /** What a check accepts, where it lists values. */
  accepted: string | null
}

interface ForeignKey {
  columns: string[]
  target: string
  targetColumns: string[]
}

/** Every table and view of the schema that has the column organization_id, and `organizations`. */
export async function tenantTables(client: pg.Client): Promise<TenantTable[]> {
  const { rows } = await client.query<TenantTable>(
    `select c.relname as name, c.relkind in ('v', 'm') as "isView",
       c.relrowsecurity and c.relforcerowsecurity as "isProtected", a.attname as "organizationColumn",
       array(select format('%I', w.attname) from pg_attribute w
             where w.attrelid = c.oid and w.attnum > 0 and not w.attisdropped and w.attgenerated = '') as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
       and a.attname = case c.relname when 'organizations' then 'id' else 'organization_id' end
     order by c.relname`,
  )
  return rows
}

/** The other tables and views of the schema. */
export async function otherTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class c
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm') and relname <> 'organizations'
       and not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'organization_id')
     order by relname`,
  )
  return rows.map(({ name }) => name)
}

/**
 * Inserts a new organization with one row in every tenant table. The rows are made from the catalogue: a value for each
 * column that needs one, foreign keys that lead to the rows made before. @returns the organization's id.
 */
export async function fillEveryTable(client: pg.Client): Promise<string> {
  const tables = (await tenantTables(client)).filter((table) => !table.isView).map(({ name }) => name)
  const made = new Map<string, Record<string, unknown>>()
  const pending = ['organizations', ...tables.filter((name) => name !== 'organizations'), 'users']
  const keys = new Map<string, ForeignKey[]>()
  for (const table of pending) keys.set(table, await foreignKeys(client, table))
  while (pending.length > 0) {
    const next = pending.find((table) => keys.get(table)!.every(({ target }) => made.has(target)))
    if (!next) throw new Error(`foreign keys form a cycle: ${pending.join(', ')}`)
    made.set(next, await insertRow(client, next, keys.get(next)!, made))
    pending.splice(pending.indexOf(next), 1)
  }
  return made.get('organizations')!.id as string
}

/** @returns the row. */
async function insertRow(
  client: pg.Client,
  table: string,
  keys: ForeignKey[],
  made: Map<string, Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const values: Record<string, unknown> = {}
  for (const column of await columns(client, table))
    if (column.required) values[column.name] = sampleOf(column)
  if ('organization_id' in values) values.organization_id = made.get('organizations')!.id
  for (const { columns, target, targetColumns } of keys)
    for (const [i, column] of columns.entries()) values[column] = made.get(target)![targetColumns[i]!]
  const names = Object.keys(values)
  const { rows } = await client.query(
    `insert into ${table} (${names.map((name) => `"${name}"`).join(', ')})
     values (${names.map((_, i) => `$${i + 1}`).join(', ')}) returning *`,
    Object.values(values),
  )
  return rows[0]
}

async function columns(client: pg.Client, table: string): Promise<Column[]> {
  const { rows } = await client.query<Column>(
    `select a.attname as name, format_type(a.atttypid, null) as type,
       a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '' as required,
       (select substring(pg_get_constraintdef(k.oid) from '= ANY \\(ARRAY\\[''([^'']+)''')
        from pg_constraint k where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum]
        limit 1) as accepted
     from pg_attribute a where a.attrelid = $1::regclass and a.attnum > 0 and not a.attisdropped`,
    [table],
  )
  return rows
}

async function foreignKeys(client: pg.Client, table: string): Promise<ForeignKey[]> {
  const names = (relation: string, numbers: string) =>
    `array(select a.attname::text from unnest(${numbers}) with ordinality n (number, place)
           join pg_attribute a on a.attrelid = ${relation} and a.attnum = n.number order by n.place)`
  const { rows } = await client.query<ForeignKey>(
    `select ${names('k.conrelid', 'k.conkey')} as columns, k.confrelid::regclass::text as target,
       ${names('k.confrelid', 'k.confkey')} as "targetColumns"
     from pg_constraint k where k.conrelid = $1::regclass and k.contype = 'f' and k.confrelid <> k.conrelid`,
    [table],
  )
  return rows
}

/** Any value of the column's type that its check accepts. */
function sampleOf({ name, type, accepted }: Column): unknown {
  if (accepted !== null) return accepted
  const make = VALUES[type]
  if (!make) throw new Error(`${name}: there is no sample value of type ${type}`)
  return make()
}

const VALUES: Record<string, () => unknown> = {
  uuid: uuidv7,
  'bit varying': () => '1',
  text: () => randomBytes(6).toString('hex'),
  'text[]': () => [],
  integer: () => 1,
  bigint: () => 1,
  numeric: () => 1,
  'double precision': () => 1,
  boolean: () => false,
  date: () => '2026-01-01',
  'timestamp with time zone': () => new Date(),
  json: () => '{}',
  jsonb: () => '{}',
  bytea: () => randomBytes(16),
  tsvector: () => '',
}
