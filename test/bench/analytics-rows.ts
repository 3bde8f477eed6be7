import type pg from 'pg'
import { print } from './report.ts'

const NAME = 'Bench analytics'

/** Row `i` of `:rows`, spread over a year; the latest first. */
const AT = '(now() - make_interval(secs => 365 * 86400 * (i::double precision / :rows)))'
const ID = `(lpad(to_hex(floor(extract(epoch from ${AT}) * 1000)::bigint), 12, '0') || '7000' || '8' || lpad(to_hex(i), 15, '0'))::uuid`
const oneOf = (...values: string[]) =>
  `(array[${values.map((value) => `'${value}'`).join(', ')}])[1 + (hashint4(i) & 65535) % ${values.length}]`
/** One of 40 users, workflows or webhooks. */
const REFERENCE =
  "(lpad(to_hex((hashint4(i + 7) & 65535) % 40), 8, '0') || '-0000-4000-8000-000000000000')::uuid"
const LATER = (days: number) => `(${AT} + make_interval(secs => ${days} * 86400 * random() ^ 3))`

/** The columns that every kind of record has. */
const RECORD = {
  id: ID,
  owner_id: REFERENCE,
  tags: "'{}'",
  custom_fields: "'{}'",
  version: '1',
  search_text: "'x'",
  created_at: AT,
  updated_at: AT,
  created_by: "'{}'",
  updated_by: "'{}'",
}

const TABLES: Record<string, Record<string, string>> = {
  contacts: {
    ...RECORD,
    do_not_contact: 'false',
    lead_status: oneOf('new', 'open', 'connected'),
    lifecycle_stage: oneOf('lead', 'customer'),
    lead_source: oneOf('web', 'fair'),
  },
  companies: {
    ...RECORD,
    name: "'C'",
    type: oneOf('customer', 'vendor'),
    industry: oneOf('software', 'steel'),
  },
  deals: {
    ...RECORD,
    name: "'D'",
    pipeline: "'default'",
    probability: '50',
    amount: '(random() * 10000)::numeric(12, 2)',
    stage: oneOf('lead', 'qualified', 'proposal', 'won', 'won', 'lost'),
    outcome: oneOf('open', 'open', 'open', 'won', 'won', 'lost'),
    currency: oneOf('EUR', 'EUR', 'EUR', 'USD'),
    closed_at: `case when ${oneOf('', '', '', 'won', 'won', 'lost')} <> '' then least(now(), ${LATER(90)}) end`,
  },
  tasks: {
    ...RECORD,
    title: "'T'",
    priority: oneOf('low', 'high'),
    type: oneOf('call', 'todo'),
    assignee_id: REFERENCE,
    status: oneOf('todo', 'done', 'done', 'done', 'cancelled'),
    due_at: LATER(30),
    completed_at: `case when ${oneOf('', 'done', 'done', 'done', '')} <> '' then least(now(), ${LATER(40)}) end`,
  },
  notes: { ...RECORD, body: "'N'", format: "'text'", pinned: 'false', author_id: REFERENCE },
  activities: {
    ...RECORD,
    type: oneOf('call', 'email', 'meeting'),
    status: "'completed'",
    occurred_at: AT,
    duration_seconds: '(random() * 3600)::integer',
    direction: oneOf('inbound', 'outbound'),
  },
  runs: {
    id: ID,
    workflow_id: REFERENCE,
    workflow_version: '1',
    workflow_name: "'W'",
    trigger: `'{"type": "api"}'`,
    status: oneOf('completed', 'completed', 'completed', 'failed', 'cancelled'),
    inputs: `jsonb_build_object('text', repeat('x', 300))`,
    created_at: AT,
    started_at: AT,
    ended_at: `${AT} + make_interval(secs => 600 * random() ^ 4)`,
  },
  incoming_logs: {
    id: ID,
    webhook_id: REFERENCE,
    created_at: AT,
    source_ip: "'192.0.2.1'",
    status: oneOf('Success', 'Success', 'Failed', 'Blocked'),
    http_status: '200',
    payload_size: '300',
    response_time_ms: '900 * random() ^ 4',
    headers: "'{}'",
    payload: "repeat('x', 300)",
    action: `case when ${oneOf('x', 'x', '', '')} = 'x' then 'Created' end`,
  },
  deliveries: {
    id: ID,
    webhook_id: REFERENCE,
    event_id: ID,
    status: oneOf('succeeded', 'succeeded', 'succeeded', 'failed'),
    attempts: '1',
    created_at: AT,
    started_at: AT,
    ended_at: `${AT} + make_interval(secs => 600 * random() ^ 4)`,
  },
}

/** One organization with `rows` rows in each table that metrics read. Existing rows are used again. @returns its id. */
export async function fillAnalytics(owner: pg.Client, rows: number): Promise<string> {
  const started = performance.now()
  const id = await organization(owner, `${NAME} ${rows}`)
  await owner.query("set session_replication_role = replica; set maintenance_work_mem = '1GB'")
  for (const [table, columns] of Object.entries(TABLES)) {
    const filled = await owner.query(`select from ${table} where organization_id = $1 limit 1`, [id])
    if (filled.rowCount) continue
    // Building an index takes less time than inserting into it.
    const indexes = await owner.query(
      "select indexname as name, indexdef as definition from pg_indexes where tablename = $1 and indexdef not like '%UNIQUE%'",
      [table],
    )
    for (const index of indexes.rows) await owner.query(`drop index ${index.name}`)
    await owner.query(
      `insert into ${table} (organization_id, ${Object.keys(columns).join(', ')})
       select '${id}', ${Object.values(columns).join(', ')} from generate_series(1, :rows) i`.replaceAll(
        ':rows',
        String(rows),
      ),
    )
    for (const index of indexes.rows) await owner.query(index.definition)
    await owner.query(`vacuum analyze ${table}`)
  }
  await owner.query('set session_replication_role = origin')
  const seconds = ((performance.now() - started) / 1_000).toFixed(0)
  print(`${rows} rows in each of ${Object.keys(TABLES).length} tables, filled in ${seconds} s`)
  return id
}

async function organization(owner: pg.Client, name: string): Promise<string> {
  const known = await owner.query('select id from organizations where name = $1', [name])
  if (known.rowCount) return known.rows[0].id
  const made = await owner.query(
    "insert into organizations (id, name, plan) values (gen_random_uuid(), $1, 'enterprise') returning id",
    [name],
  )
  return made.rows[0].id
}
