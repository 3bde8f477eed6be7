import assert from 'node:assert/strict'
import { queryAnalytics } from '../../../db/analytics/analytics.ts'
import { METRIC_NAMES, METRICS } from '../../../db/model/analytics/metrics/index.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { createPipeline } from '../../../db/records/pipelines/pipelines.ts'
import {
  type AnalyticsQuery,
  type AnalyticsRow,
  analyticsQuery,
} from '../../../workflows/shared/analytics.ts'
import { analyticsRows, insertAnalyticsRows, type Row } from '../../support/analytics-rows.ts'
import {
  createOrganization,
  createTestDatabase,
  type TestDatabase,
  testActor,
} from '../../support/database.ts'
import { statementsOf } from '../../support/plans.ts'

const DAY = 86_400_000

/** The promise of each metric, in terms of plain rows and independent of its SQL. */
interface Promise {
  table: string
  at: (row: Row) => string | null
  counts?: (row: Row, now: number) => boolean
  value: (rows: Row[], now: number) => number | string | null
}

const isOpen = ({ stage }: Row) => stage !== 'won' && stage !== 'lost'
const isWon = ({ stage }: Row) => stage === 'won'
const priced = ({ amount, currency }: Row) => amount !== null && currency !== null
const cents = (rows: Row[], part = (cents: bigint, _: Row) => cents * 100n) =>
  rows.reduce((sum, row) => sum + part(BigInt(row.amount.replace('.', '')), row), 0n)
/** An amount from ten-thousandths. */
const money = (value: bigint) => {
  const text = value.toString().padStart(5, '0')
  return `${text.slice(0, -4)}.${text.slice(-4).replace(/0{1,2}$/, '')}`
}
const rate = (is: (row: Row) => boolean) => (rows: Row[]) =>
  rows.length === 0 ? null : (100 * rows.filter(is).length) / rows.length
const sum = (of: (row: Row) => number) => (rows: Row[]) => rows.reduce((all, row) => all + of(row), 0)
const average = (of: (row: Row) => number) => (rows: Row[]) =>
  rows.length === 0 ? null : sum(of)(rows) / rows.length
const percentile = (p: number, of: (row: Row) => number) => (rows: Row[]) =>
  rows.length === 0 ? null : rows.map(of).toSorted((a, b) => a - b)[Math.ceil(p * rows.length) - 1]!
const count = (rows: Row[]) => rows.length
const between = (from: string, to: string) => (row: Row) =>
  (Date.parse(row[to]) - Date.parse(row[from])) / 1_000
const days = (from: string, to: string) => (row: Row) => between(from, to)(row) / 86_400
const created = ({ created_at }: Row) => created_at

const closed = { table: 'deals', at: ({ closed_at }: Row) => closed_at }
const runs = { table: 'runs', at: created }
const took = { ...runs, counts: ({ kind, status }: Row) => kind === 'run' && status === 'completed' }
const requests = { table: 'incoming_logs', at: created }
const sent = { table: 'deliveries', at: created }
const isSent = ({ test, status }: Row) => !test && ['succeeded', 'failed'].includes(status)
const due = {
  table: 'tasks',
  at: ({ due_at }: Row) => due_at,
  counts: ({ status, due_at }: Row, now: number) => status !== 'cancelled' && Date.parse(due_at) <= now,
}
const isDone = ({ status }: Row) => status === 'done'
const done = { table: 'tasks', at: ({ completed_at }: Row) => completed_at, counts: isDone }
const todo = ({ status }: Row) => !['done', 'cancelled'].includes(status)
const activities = { table: 'activities', at: ({ occurred_at }: Row) => occurred_at }
const lasting = { ...activities, counts: (row: Row) => row.duration_seconds !== null }
const duration = (row: Row) => row.duration_seconds
const ended = ({ kind, status }: Row) =>
  kind === 'run' && ['completed', 'failed', 'terminated', 'lost'].includes(status)

const PROMISED: Record<string, Promise> = {
  ...Object.fromEntries(kindNames.map((table) => [`${table}.created`, { table, at: created, value: count }])),
  'line_items.value': {
    table: 'line_items',
    at: created,
    counts: priced,
    value: (rows) => money(cents(rows)),
  },
  'deals.count': { table: 'deals', at: created, value: count },
  'deals.value': { table: 'deals', at: created, counts: priced, value: (rows) => money(cents(rows)) },
  'deals.open': { table: 'deals', at: created, counts: isOpen, value: count },
  'deals.open_value': {
    table: 'deals',
    at: created,
    counts: (row) => isOpen(row) && priced(row),
    value: (rows) => money(cents(rows)),
  },
  'deals.weighted_value': {
    table: 'deals',
    at: created,
    counts: (row) => isOpen(row) && priced(row),
    value: (rows) => money(cents(rows, (amount, { probability }) => amount * BigInt(probability))),
  },
  'deals.days_in_stage': {
    table: 'deals',
    at: created,
    counts: isOpen,
    value: (rows, now) => average((row) => (now - Date.parse(row.stage_changed_at)) / DAY)(rows),
  },
  'deals.won': { ...closed, counts: isWon, value: count },
  'deals.won_value': {
    ...closed,
    counts: (row) => isWon(row) && priced(row),
    value: (rows) => money(cents(rows)),
  },
  'deals.won_average': {
    ...closed,
    counts: (row) => isWon(row) && priced(row),
    value(rows) {
      if (rows.length === 0) return null
      const [sum, count] = [cents(rows, (amount) => amount), BigInt(rows.length)]
      return money(((2n * sum + count) / (2n * count)) * 100n)
    },
  },
  'deals.lost': { ...closed, counts: ({ stage }) => stage === 'lost', value: count },
  'deals.lost_value': {
    ...closed,
    counts: (row) => row.stage === 'lost' && priced(row),
    value: (rows) => money(cents(rows)),
  },
  'deals.win_rate': { ...closed, value: rate(isWon) },
  'deals.days_to_close': { ...closed, counts: isWon, value: average(days('created_at', 'closed_at')) },
  'activities.count': { ...activities, value: count },
  'activities.duration': { ...lasting, value: sum(duration) },
  'activities.duration_average': { ...lasting, value: average(duration) },
  'tasks.open': { table: 'tasks', at: created, counts: todo, value: count },
  'tasks.overdue': {
    ...due,
    counts: (row, now) => todo(row) && Date.parse(row.due_at) < now,
    value: count,
  },
  'tasks.completed': { ...done, value: count },
  'tasks.days_to_complete': { ...done, value: average(days('created_at', 'completed_at')) },
  'tasks.completion_rate': { ...due, value: rate(isDone) },
  'tasks.on_time_rate': { ...due, value: rate((row) => isDone(row) && row.completed_at <= row.due_at) },
  'runs.count': { ...runs, counts: ({ kind }) => kind === 'run', value: count },
  'runs.success_rate': { ...runs, counts: ended, value: rate(({ status }) => status === 'completed') },
  'runs.duration_average': { ...took, value: average(between('started_at', 'ended_at')) },
  'runs.duration_p50': { ...took, value: percentile(0.5, between('started_at', 'ended_at')) },
  'runs.duration_p95': { ...took, value: percentile(0.95, between('started_at', 'ended_at')) },
  'requests.count': { ...requests, value: sum((row) => row.requests) },
  'requests.success_rate': {
    ...requests,
    counts: ({ status }) => status !== 'Blocked',
    value: rate(({ status }) => status === 'Success'),
  },
  'requests.response_time_p95': {
    ...requests,
    counts: ({ status }) => status === 'Success',
    value: percentile(0.95, (row) => row.response_time_ms),
  },
  'deliveries.count': { ...sent, counts: ({ test }) => !test, value: count },
  'deliveries.success_rate': { ...sent, counts: isSent, value: rate(({ status }) => status === 'succeeded') },
  'deliveries.attempts': { ...sent, counts: ({ test }) => !test, value: sum((row) => row.attempts) },
  'deliveries.attempts_average': { ...sent, counts: isSent, value: average((row) => row.attempts) },
  'deliveries.duration_p95': {
    ...sent,
    counts: (row) => isSent(row) && row.status === 'succeeded',
    value: percentile(0.95, between('started_at', 'ended_at')),
  },
}

describe('metrics', () => {
  const now = new Date(Date.now() - (Date.now() % 1_000))
  let db: TestDatabase
  let organizationId: string
  let tables: Record<string, Row[]>
  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db, { settings: { currency: 'CHF' } })
    const other = await createOrganization(db)
    for (const id of [organizationId, other])
      await db.tenant(id, testActor, (tx) => createPipeline(tx, { name: 'partners', preset: 'pipedrive' }))
    tables = analyticsRows(organizationId, now.getTime(), 700)
    await db.asOwner(async (client) => {
      await insertAnalyticsRows(client, tables)
      await insertAnalyticsRows(client, analyticsRows(other, now.getTime(), 100))
    })
  })
  after(() => db.drop())

  const ask = (query: Partial<AnalyticsQuery> & { metric: string }, of = organizationId) =>
    db.tenant(of, testActor, (tx) => queryAnalytics(tx, analyticsQuery.parse(query), { now }))

  /** The rows that a metric must count, each with its time, by the metric's name. */
  const counted = new Map<string, { row: Row; moment: number }[]>()
  const countedBy = (name: string) => {
    const { table, at, counts = () => true } = PROMISED[name]!
    const known = counted.get(name)
    if (known) return known
    const found = tables[table]!.flatMap((row) => {
      const time = at(row)
      const isCounted = time !== null && (row.deleted_at ?? null) === null && counts(row, now.getTime())
      return isCounted ? { row, moment: Date.parse(time) } : []
    })
    counted.set(name, found)
    return found
  }
  /** Those of a period. */
  const rowsOf = (name: string, from: number, to: number): Row[] =>
    countedBy(name).flatMap(({ row, moment }) => (moment >= from && moment < to ? row : []))
  const isMoney = (name: string) => METRICS.find((metric) => metric.name === name)!.unit === 'money'

  const equal = (name: string, value: number | string | null, rows: Row[], what: string) => {
    const wanted = PROMISED[name]!.value(rows, now.getTime())
    if (typeof wanted !== 'number' || typeof value !== 'number') return assert.equal(value, wanted, what)
    const within = /_p\d\d$/.test(name) ? 0.021 * wanted + 0.001 : 0.0051
    assert.ok(Math.abs(value - wanted) <= within, `${what}: ${value}, not ${wanted}`)
  }

  it('are all promised here, each with a name that says its table, and described', () => {
    assert.deepEqual([...METRIC_NAMES].sort(), Object.keys(PROMISED).sort())
    for (const { name, description } of METRICS) {
      assert.match(name, /^[a-z_]+\.[a-z0-9_]+$/)
      assert.match(description, /^[A-Z].*\.$/)
    }
  })

  for (const name of METRIC_NAMES) {
    it(`${name} is what its rows say: in a period, by day, and by each of its dimensions`, async () => {
      const metric = METRICS.find((one) => one.name === name)!
      const [from, to] = [now.getTime() - 40 * DAY, now.getTime() + DAY]
      const period = { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
      const compare = (row: AnalyticsRow, start: number, end: number) => {
        const rows = rowsOf(name, start, end).filter(
          (one) =>
            (!isMoney(name) || one.currency === row.currency) &&
            Object.entries(row.group).every(([dimension, value]) => (one[dimension] ?? null) === value),
        )
        equal(name, row.value, rows, JSON.stringify(row))
        return rows.length
      }
      const whole = await ask({ metric: name, ...period })
      for (const row of whole.rows) compare(row, from, to)
      assert.ok(rowsOf(name, from, to).length > 20, 'the generated rows have some')
      assert.equal(whole.rows.length, isMoney(name) ? 3 : 1)
      if (!isMoney(name)) assert.equal(whole.total, whole.rows[0]!.value)

      const daily = await ask({ metric: name, ...period, interval: 'day' })
      let counted = 0
      for (const [index, row] of daily.rows.entries()) {
        const next = daily.rows.slice(index).find(({ bucket }) => bucket !== row.bucket)?.bucket
        const start = Math.max(from, Date.parse(row.bucket!))
        counted += compare(row, start, next ? Date.parse(next) : to)
      }
      assert.equal(counted, rowsOf(name, from, to).length)
      assert.equal(new Set(daily.rows.map(({ bucket }) => bucket)).size, 42)
      assert.deepEqual(daily.totals, whole.totals)

      for (const dimension of Object.keys(metric.source.dimensions)) {
        const grouped = await ask({ metric: name, ...period, group_by: [dimension] })
        counted = 0
        for (const row of grouped.rows) {
          assert.equal(row.other, false)
          counted += compare(row, from, to)
        }
        assert.equal(counted, rowsOf(name, from, to).length, `by ${dimension}`)
        const [value] = grouped.rows.filter(({ value }) => value !== null && value !== 0)
        if (!value) continue
        const filtered = await ask({ metric: name, ...period, filter: value.group })
        const same = filtered.rows.find(({ currency }) => currency === value.currency)
        assert.equal(same?.value, value.value, `filter of ${dimension}`)
      }
    })
  }

  it('add up the groups that are not shown, by currency, and give the total of all', async () => {
    const all = { from: new Date(0).toISOString(), to: '2100-01-01' }
    const shown = await ask({ metric: 'deals.open_value', ...all, group_by: ['owner_id', 'stage'], limit: 2 })
    const others = shown.rows.filter(({ other }) => other)
    assert.equal(others.length, 3)
    const named = new Set(shown.rows.flatMap(({ other, group }) => (other ? [] : JSON.stringify(group))))
    assert.equal(named.size, 2)
    for (const { currency, value, group } of others) {
      assert.deepEqual(group, { owner_id: null, stage: null })
      const rows = rowsOf('deals.open_value', 0, Number.POSITIVE_INFINITY).filter(
        (row) =>
          row.currency === currency &&
          !named.has(JSON.stringify({ owner_id: row.owner_id, stage: row.stage })),
      )
      equal('deals.open_value', value, rows, `the others in ${currency}`)
    }
    assert.equal(shown.total, null)
    assert.deepEqual(
      shown.totals.map(({ currency }) => currency),
      ['CHF', 'EUR', 'USD'],
    )
    for (const { currency, value } of shown.totals) {
      const rows = rowsOf('deals.open_value', 0, Number.POSITIVE_INFINITY)
      equal(
        'deals.open_value',
        value,
        rows.filter((row) => row.currency === currency),
        'total',
      )
    }
  })

  it('are zero, or null for averages, where there is nothing; money in the currency of the organization', async () => {
    const empty = await createOrganization(db, { settings: { currency: 'SEK', timezone: 'Asia/Kolkata' } })
    const rowsIn = async (metric: string, more = {}) => (await ask({ metric, ...more }, empty)).rows
    for (const { name, measure } of METRICS) {
      const { rows, totals } = await ask({ metric: name }, empty)
      assert.equal(rows.length, 1, name)
      assert.deepEqual(totals.length, 1)
      const nothing = measure.type === 'count' || measure.type === 'sum' ? (isMoney(name) ? '0.00' : 0) : null
      assert.equal(rows[0]!.value, nothing, name)
      assert.equal(rows[0]!.currency, isMoney(name) ? 'SEK' : undefined)
    }
    assert.deepEqual(await rowsIn('deals.won_value', { group_by: ['stage'] }), [])
    const daily = await rowsIn('contacts.created', { from: '2026-03-01', to: '2026-03-03', interval: 'day' })
    assert.deepEqual(
      daily.map(({ bucket, value }) => [bucket, value]),
      [
        ['2026-02-28T18:30:00.000Z', 0],
        ['2026-03-01T18:30:00.000Z', 0],
        ['2026-03-02T18:30:00.000Z', 0],
      ],
    )
  })

  it('have an index in the order of their time that holds all they read', async () => {
    const { rows: indexes } = await db.asOwner((client) =>
      client.query<{ table: string; columns: string[] }>(
        `select indrelid::regclass::text as table,
           array(select pg_get_indexdef(indexrelid, n, true) from generate_series(1, indnatts) n) as columns
         from pg_index`,
      ),
    )
    for (const { name, source, time } of METRICS) {
      const dimensions = Object.keys(source.dimensions)
      const filter = Object.fromEntries(dimensions.map((dimension) => [dimension, null]))
      const query = analyticsQuery.parse({ metric: name, filter, interval: 'day' })
      const sent = await statementsOf(db, ({ tenant }) =>
        tenant(organizationId, testActor, (tx) => queryAnalytics(tx, query, { now })),
      )
      const { sql } = sent.find((one) => one.sql.includes(`from ${source.table} t`))!
      // The index has the condition that a record is not deleted.
      const read = new Set([...sql.matchAll(/\bt\.(\w+)/g)].map(([, column]) => column!))
      read.delete('deleted_at')
      const fits = indexes.filter(
        ({ table, columns }) =>
          table === source.table &&
          columns[0] === 'organization_id' &&
          columns[1] === time &&
          [...read].every((column) => columns.includes(column)),
      )
      assert.ok(fits.length > 0, `${name} reads ${[...read]}`)
    }
  })
})
