import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { v7 as uuidv7 } from 'uuid'
import { kindNames } from '../../workflows/shared/record-kinds.ts'
import { RUN_STATUSES } from '../../workflows/shared/statuses.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of any table
export type Row = Record<string, any>

const HOUR = 3_600_000

/** Generated rows of every table that metrics read, of `organizationId`, around `now`. */
export function analyticsRows(organizationId: string, now: number, count: number): Record<string, Row[]> {
  let seed = 7
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return seed / 2 ** 31
  }
  const int = (below: number) => Math.floor(random() * below)
  const oneOf = <T>(...values: T[]): T => values[int(values.length)]!
  const many = <T>(create: (i: number) => T) => Array.from({ length: count }, (_, i) => create(i))
  /** In the last 60 days, and some in the hours to come. */
  const moment = () => now - Math.floor(random() * 60 * 24 * HOUR) + (random() < 0.1 ? 3 * HOUR : 0)
  const after = (start: number) => start + Math.floor(random() ** 3 * 20 * 24 * HOUR)
  const time = (ms: number) => new Date(ms).toISOString()
  const users = many(() => randomUUID()).slice(0, 4)
  const webhooks = users.map(() => randomUUID())
  const user = () => oneOf(...users, null)
  const record = (created: number) => ({
    organization_id: organizationId,
    id: uuidv7({ msecs: created }),
    owner_id: user(),
    tags: [],
    custom_fields: {},
    version: 1,
    created_by: {},
    updated_by: {},
    search_text: '',
    created_at: time(created),
    updated_at: time(created),
    deleted_at: random() < 0.1 ? time(now) : null,
  })
  const lifecycle = () => oneOf('lead', 'customer', null)
  return {
    contacts: many(() => ({
      ...record(moment()),
      do_not_contact: false,
      lead_status: oneOf('new', 'open', null),
      lifecycle_stage: lifecycle(),
      lead_source: oneOf('web', 'Web', 'fair', null),
    })),
    companies: many(() => ({
      ...record(moment()),
      name: 'C',
      type: oneOf('customer', 'vendor', null),
      lifecycle_stage: lifecycle(),
      industry: oneOf('software', null),
    })),
    deals: many(() => {
      const created = moment()
      const stage = oneOf('lead', 'qualified', 'proposal', 'negotiation', 'won', 'won', 'lost')
      const amount = random() < 0.1 ? null : (int(1e8) / 100).toFixed(2)
      return {
        ...record(created),
        name: 'D',
        amount,
        currency: amount === null && random() < 0.5 ? null : oneOf('EUR', 'USD', 'CHF'),
        pipeline: oneOf('default', 'partners'),
        stage,
        outcome: stage === 'won' || stage === 'lost' ? stage : 'open',
        stage_changed_at: time(created),
        probability: int(101),
        closed_at: stage === 'won' || stage === 'lost' ? time(after(created)) : null,
        source: oneOf('web', null),
        deal_type: oneOf('renewal', 'new_business', null),
      }
    }),
    tasks: many(() => {
      const created = moment()
      const status = oneOf('todo', 'in_progress', 'waiting', 'done', 'done', 'cancelled')
      return {
        ...record(created),
        title: 'T',
        status,
        priority: oneOf('low', 'high'),
        type: oneOf('call', 'todo'),
        due_at: random() < 0.3 ? null : time(after(created)),
        completed_at: status === 'done' ? time(after(created)) : null,
        assignee_id: user(),
      }
    }),
    notes: many(() => ({
      ...record(moment()),
      body: 'N',
      format: oneOf('text', 'markdown'),
      pinned: false,
      author_id: user(),
    })),
    activities: many(() => {
      const created = moment()
      return {
        ...record(created),
        type: oneOf('call', 'email', 'meeting'),
        status: oneOf('planned', 'completed'),
        occurred_at: time(after(created)),
        duration_seconds: oneOf(null, int(4_000)),
        direction: oneOf('inbound', 'outbound', null),
      }
    }),
    products: many(() => ({
      ...record(moment()),
      name: 'P',
      active: true,
      recurring_interval: oneOf('month', 'year', null),
      currency: oneOf('EUR', 'CHF', null),
    })),
    line_items: many(() => ({
      ...record(moment()),
      name: 'L',
      quantity: 1,
      unit_price: 1,
      amount: (int(1e8) / 100).toFixed(2),
      tax_amount: 0,
      product_id: user(),
      recurring_interval: oneOf('month', 'year', null),
      currency: oneOf('EUR', 'CHF', 'USD', null),
    })),
    consents: many(() => ({
      ...record(moment()),
      purpose: oneOf('newsletter', 'events'),
      channel: oneOf('any', 'email'),
      state: oneOf('granted', 'withdrawn'),
      stated_at: time(moment()),
      legal_basis: oneOf('consent', 'contract'),
    })),
    runs: many(() => {
      const created = moment()
      const status = oneOf(...RUN_STATUSES, 'completed', 'completed', 'completed')
      const started = created + int(5_000)
      const isTest = random() < 0.1
      return {
        organization_id: organizationId,
        id: uuidv7({ msecs: created }),
        status,
        kind: isTest ? 'node_test' : 'run',
        workflow_name: 'W',
        trigger: {},
        inputs: {},
        workflow_id: isTest ? null : oneOf(...users),
        workflow_version: isTest ? null : 1,
        created_at: time(created),
        started_at: status === 'queued' ? null : time(started),
        ended_at: ['queued', 'running', 'paused'].includes(status)
          ? null
          : time(started + Math.floor(random() ** 6 * 5 * 24 * HOUR)),
      }
    }),
    incoming_logs: many(() => {
      const created = moment()
      const status = oneOf('Success', 'Success', 'Success', 'Failed', 'Blocked')
      return {
        organization_id: organizationId,
        webhook_id: oneOf(...webhooks),
        id: uuidv7({ msecs: created }),
        created_at: time(created),
        source_ip: '192.0.2.1',
        status,
        http_status: 200,
        payload_size: 1,
        response_time_ms: random() ** 4 * 900,
        headers: {},
        requests: status === 'Blocked' ? 1 + int(50) : 1,
        action: status === 'Success' ? oneOf('Created', 'Updated', 'Skipped') : null,
        error: status === 'Success' ? null : oneOf('invalid_secret', 'rate_limited'),
      }
    }),
    deliveries: many(() => {
      const created = moment()
      const status = oneOf('held', 'queued', 'delivering', 'succeeded', 'succeeded', 'succeeded', 'failed')
      const isDone = status === 'succeeded' || status === 'failed'
      return {
        organization_id: organizationId,
        webhook_id: oneOf(...webhooks),
        id: uuidv7({ msecs: created }),
        event_id: randomUUID(),
        status,
        test: random() < 0.1,
        attempts: isDone ? 1 + int(4) : 0,
        created_at: time(created),
        started_at: isDone ? time(created) : null,
        ended_at: isDone ? time(created + Math.floor(random() ** 5 * 24 * HOUR)) : null,
      }
    }),
  }
}

/** Inserts them as the owner of the tables, without the rows that they refer to. */
export async function insertAnalyticsRows(client: pg.Client, tables: Record<string, Row[]>): Promise<void> {
  await client.query('set session_replication_role = replica')
  for (const [table, rows] of Object.entries(tables)) {
    const columns = Object.keys(rows[0]!).join(', ')
    await client.query(
      `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $1)`,
      [JSON.stringify(rows)],
    )
  }
  await client.query('set session_replication_role = origin')
  await client.query(`vacuum analyze ${[...kindNames, 'runs', 'incoming_logs', 'deliveries'].join(', ')}`)
}
