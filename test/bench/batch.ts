import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { searchTextOf, writableColumns } from '../../db/model/records/columns.ts'
import { kinds } from '../../db/model/records/kinds/index.ts'
import { creation } from '../../db/model/records/prepare.ts'
import { createSchema } from '../../db/model/records/schemas.ts'
import type { Database } from '../../db/postgres/connect.ts'
import { load, summary } from './load.ts'
import type { Target } from './record-cases.ts'
import { inTurns, printPairs } from './report.ts'
import { contactAt } from './seed-values.ts'

const SIZE = 200
const SECONDS = 4
const ROUNDS = 3
const MILLION = 1_000_000

/**
 * Batches of 200 creates by one client, each compared with one multi-row INSERT of the same rows, histories and events
 * in one transaction, with prepared parameters, on a bare connection without HTTP.
 */
export async function benchBatch(db: Database, { api, key, id, contacts }: Target): Promise<void> {
  const client = new pg.Client({ connectionString: db.url })
  await client.connect()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  let made = Date.now() % MILLION
  const inputs = () => Array.from({ length: SIZE }, () => inputAt(made++))
  const shot = () => ({
    path: '/v1/objects/contacts/batch',
    method: 'POST' as const,
    headers,
    body: JSON.stringify({ operations: inputs().map((data) => ({ op: 'create', data })) }),
  })
  try {
    await client.query('set role agx_app')
    await client.query("select set_config('app.organization_id', $1, false)", [id])
    await load(api, 1, 1, shot)
    const pairs = await inTurns(
      ROUNDS,
      () => load(api, 1, SECONDS, shot),
      () => insertFor(client, id, inputs),
    )
    printPairs(`batch of ${SIZE} at ${contacts}`, pairs)
  } finally {
    // Also after an error: the end of PostgreSQL under an open connection would hide it.
    await client.end()
  }
}

/** Like the seed's contacts, without a company. */
function inputAt(n: number) {
  const { id, company_id, created_at, updated_at, external_id, ...input } = contactAt(n, MILLION, ['none'])
  return { ...input, external_id: `bench-${Date.now().toString(36)}-${n}` }
}

async function insertFor(client: pg.Client, organizationId: string, inputs: () => object[]) {
  const times: number[] = []
  let took = 0
  while (took < SECONDS * 1_000) {
    const statements = insertsOf(organizationId, inputs())
    const started = performance.now()
    await client.query('begin')
    for (const statement of statements) await client.query(statement)
    await client.query('commit')
    times.push(performance.now() - started)
    took += times.at(-1)!
  }
  return summary(times, took / 1_000)
}

function insertsOf(organizationId: string, inputs: object[]): pg.QueryConfig[] {
  const by = { type: 'system' as const, id: null }
  const rules = { definitions: {}, strict: false }
  const writes = inputs.map((input) =>
    creation(by, kinds.contacts, createSchema('contacts').parse(input), rules),
  )
  const columns = writableColumns(kinds.contacts)
  const others = ['version', 'created_at', 'updated_at', 'created_by', 'updated_by']
  return [
    insert(
      'contacts',
      [...columns, 'organization_id', 'id', ...others, 'search_text'],
      writes.map(({ record }) => [
        ...columns.map((column) => toColumn(record[column])),
        organizationId,
        record.id,
        ...others.map((name) => record[name]),
        searchTextOf(kinds.contacts, record),
      ]),
    ),
    insert(
      'record_history',
      ['organization_id', 'object', 'record_id', 'version', 'action', 'changes', 'actor', 'at'],
      writes.map(({ record, action, changes }) => [
        organizationId,
        'contact',
        record.id,
        1,
        action,
        JSON.stringify(changes),
        JSON.stringify(by),
        record.created_at,
      ]),
    ),
    insert(
      'events',
      ['organization_id', 'id', 'name', 'data', 'subject_id', 'actor', 'trace_id', 'created_at'],
      writes.map(({ record }) => [
        organizationId,
        uuidv7(),
        'contact.created',
        JSON.stringify(record),
        record.id,
        JSON.stringify(by),
        randomUUID(),
        record.created_at,
      ]),
    ),
  ]
}

/** A value as the driver expects it: lists as arrays, objects as JSON. */
const toColumn = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? JSON.stringify(value) : value

function insert(table: string, columns: string[], rows: unknown[][]): pg.QueryConfig {
  const width = columns.length
  const row = (_: unknown, i: number) => `(${columns.map((_, j) => `$${i * width + j + 1}`).join(', ')})`
  const text = `insert into ${table} (${columns.join(', ')}) values ${rows.map(row).join(', ')}`
  return { name: `bench ${table}`, text, values: rows.flat() }
}
