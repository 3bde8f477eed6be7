import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { createKey } from '../../db/access/keys.ts'
import { SCOPES } from '../../db/model/access/scopes.ts'
import { searchTextOf, writableColumns } from '../../db/model/records/columns.ts'
import { isList } from '../../db/model/records/filters.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { print, progress } from './report.ts'
import { companyAt, contactAt } from './seed-values.ts'

/** One organization with contacts, and a key with every scope. */
export interface Seeded {
  id: string
  key: string
  contacts: number
}

export interface Seed {
  big: Seeded
  /** The same with few contacts: slightly more than the depth of the deep page. */
  small: Seeded
}

const SMALL = 10_250
const NEIGHBOURS = 200
/** Rows per statement. */
const CHUNK = 5_000
const LIMITS = { requests_per_minute: 100_000_000, requests_per_minute_per_key: 100_000_000 }

/**
 * One organization with `rows` contacts with custom fields, one with few, and 200 small ones. Existing ones are used
 * again. The API's write functions create the rows, so that search behaves as with real ones.
 */
export async function seed(db: Database, rows: number): Promise<Seed> {
  const started = performance.now()
  const [big, small] = [await organization(db, `Bench ${rows}`), await organization(db, `Bench ${SMALL}`)]
  if (big.isNew || small.isNew) {
    const neighbours: { id: string; isNew: boolean }[] = []
    for (let i = 0; i < NEIGHBOURS; i++) neighbours.push(await organization(db, `Neighbour ${i}`))
    const client = new pg.Client({ connectionString: db.url })
    await client.connect()
    try {
      const restore = await withoutIndexes(client)
      if (big.isNew) await fill(client, big.id, rows)
      if (small.isNew) await fill(client, small.id, SMALL)
      for (const [i, { id, isNew }] of neighbours.entries())
        if (isNew) await fill(client, id, 5 + ((i * i) % 100), true)
      progress(`${rows} contacts after ${seconds(started)}; building the indexes …`)
      await restore()
      await client.query('vacuum (analyze) contacts, companies')
      await client.query('checkpoint')
    } finally {
      await client.end()
    }
    print(`seeded ${rows} + ${SMALL} contacts and ${NEIGHBOURS} neighbours in ${seconds(started)}`)
  }
  return {
    big: { id: big.id, key: await key(db, big.id), contacts: rows },
    small: { id: small.id, key: await key(db, small.id), contacts: SMALL },
  }
}

async function organization(db: Database, name: string): Promise<{ id: string; isNew: boolean }> {
  const known = await db.system('organizations').where({ name }).first<{ id: string } | undefined>('id')
  if (known) return { id: known.id, isNew: false }
  const id = uuidv7()
  await db.system('organizations').insert({ id, name, plan: 'enterprise', limits: JSON.stringify(LIMITS) })
  return { id, isNew: true }
}

async function key(db: Database, organizationId: string): Promise<string> {
  const made = await db.tenant(organizationId, { type: 'system', id: null }, (tx) =>
    createKey(tx, { name: 'Bench', scopes: SCOPES }),
  )
  return made.key
}

/** Drops the indexes, because building them after loading is faster. @returns a function that builds them. */
async function withoutIndexes(client: pg.Client): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select indexname as name, indexdef as definition from pg_indexes
     where tablename = 'contacts' and indexname <> 'contacts_pkey'`,
  )
  for (const { name } of rows) await client.query(`drop index ${name}`)
  return async () => {
    await client.query("set maintenance_work_mem = '1GB'; set max_parallel_maintenance_workers = 2")
    for (const { definition } of rows) await client.query(definition)
  }
}

/** Writes contacts and their companies into an empty organization. */
export async function fill(
  client: pg.Client,
  organizationId: string,
  count: number,
  quiet = false,
): Promise<void> {
  const companies = Array.from({ length: Math.ceil(count / 50) }, (_, i) => companyAt(i, count))
  await insert(client, 'companies', organizationId, companies)
  const ids = companies.map(({ id }) => String(id))
  let inserting: Promise<void> = Promise.resolve()
  for (let from = 0; from < count; from += CHUNK) {
    const length = Math.min(CHUNK, count - from)
    const rows = Array.from({ length }, (_, i) => contactAt(from + i, count, ids))
    // The next rows are generated while PostgreSQL inserts these.
    await inserting
    inserting = insert(client, 'contacts', organizationId, rows)
    if (!quiet) progress(`${from + length} of ${count} contacts`)
  }
  await inserting
}

async function insert(
  client: pg.Client,
  kind: 'contacts' | 'companies',
  organizationId: string,
  records: Record<string, unknown>[],
): Promise<void> {
  const definition = kinds[kind]
  const columns = [
    'organization_id',
    'id',
    'version',
    'created_at',
    'updated_at',
    'created_by',
    'updated_by',
    ...writableColumns(definition),
    'search_text',
  ]
  const by = { type: 'system', id: null }
  // A column that a row does not name would be null.
  const lists = Object.entries(definition.fields)
    .filter(([, { type }]) => isList(type))
    .map(([name]) => [name, []])
  const empty = { tags: [], custom_fields: {}, ...Object.fromEntries(lists) }
  const rows = records.map((record) => ({
    organization_id: organizationId,
    version: 1,
    created_by: by,
    updated_by: by,
    ...empty,
    ...record,
    search_text: searchTextOf(definition, { ...record, alternate_keys: [] }),
  }))
  await client.query(
    `insert into ${kind} (${columns.join(', ')})
     select ${columns.join(', ')} from json_populate_recordset(null::${kind}, $1)`,
    [JSON.stringify(rows)],
  )
}

const seconds = (since: number) => `${((performance.now() - since) / 1_000).toFixed(0)} s`
