import { readFileSync } from 'node:fs'
import pg from 'pg'
import { queryAll, queryAnalytics } from '../../db/analytics/analytics.ts'
import { migrate } from '../../db/migrations/migrate.ts'
import { DASHBOARDS, dashboardQueries } from '../../db/model/analytics/dashboards.ts'
import { METRICS } from '../../db/model/analytics/metrics/index.ts'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { analyticsQuery } from '../../workflows/shared/analytics.ts'
import { testActor } from '../support/database.ts'
import { planOf, statementsOf } from '../support/plans.ts'
import { fillAnalytics } from './analytics-rows.ts'
import { median } from './load.ts'
import { withOwnPostgres } from './own-postgres.ts'
import { print } from './report.ts'

const ROUNDS = 3

/**
 * The time of each metric, in a month by day and over the year of the rows, and of each dashboard, with `rows` rows in
 * each table of one organization. The floor is a count of the same table: PostgreSQL's scan of an index, without
 * groups. The CPU time of the PostgreSQL process is reported too, because the machine may be busy.
 */
export async function benchAnalytics(
  rows: number,
  { databaseUrl, only = '' }: { databaseUrl: string | undefined; only: string | undefined },
): Promise<void> {
  if (databaseUrl === undefined) return withOwnPostgres((db, owner) => measure(db, owner, rows, only))
  await migrate(databaseUrl)
  const db = connect({ url: databaseUrl })
  const owner = new pg.Client({ connectionString: databaseUrl })
  await owner.connect()
  try {
    await measure(db, owner, rows, only)
  } finally {
    await db.close()
    await owner.end()
  }
}

async function measure(db: Database, owner: pg.Client, rows: number, only: string): Promise<void> {
  const organizationId = await fillAnalytics(owner, rows)
  const timed = async (name: string, work: (db: Database) => Promise<unknown>, showsPlan = true) => {
    if (!name.includes(only)) return
    const times: Time[] = []
    for (let round = 0; round < ROUNDS; round++) times.push(await timeOf(db, organizationId, work))
    const [wall, cpu] = [median(times.map(({ wall }) => wall)), median(times.map(({ cpu }) => cpu))]
    let scans = ''
    if (showsPlan) {
      const [statement] = (await statementsOf(db, work)).filter(({ sql }) => sql.includes(' t\n'))
      await owner.query("set random_page_cost = 1.1; set jit = off; set work_mem = '32MB'")
      const plan = statement && (await planOf(owner, statement))
      scans = plan
        ? `${plan.rows} rows  ${[...new Set(plan.nodes.filter((node) => !/CTE/.test(node)))].join(', ')}`
        : ''
    }
    print(
      `${name.padEnd(44)} ${wall.toFixed(0).padStart(5)} ms  CPU ${cpu.toFixed(0).padStart(5)} ms  ${scans}`,
    )
  }
  const ask = (query: object) => {
    const asked = analyticsQuery.parse(query)
    return ({ tenant }: Database) => tenant(organizationId, testActor, (tx) => queryAnalytics(tx, asked))
  }
  for (const table of new Set(METRICS.map(({ source }) => source.table)))
    await timed(
      `floor: count of ${table}`,
      ({ tenant }) =>
        tenant(organizationId, testActor, (tx) =>
          tx.trx(table).where({ organization_id: organizationId }).count(),
        ),
      false,
    )
  for (const { name, source } of METRICS) {
    const [dimension] = Object.keys(source.dimensions)
    await timed(
      `${name}: a month by day and ${dimension}`,
      ask({ metric: name, interval: 'day', last: '30d', group_by: [dimension] }),
    )
    await timed(
      `${name}: the year by month and ${dimension}`,
      ask({ metric: name, interval: 'month', last: '365d', group_by: [dimension] }),
    )
    await timed(
      `${name}: the year by ${dimension}`,
      ask({ metric: name, last: '366d', group_by: [dimension] }),
    )
  }
  for (const dashboard of DASHBOARDS)
    await timed(
      `dashboard: ${dashboard.name}`,
      ({ tenant }) =>
        tenant(organizationId, testActor, (tx) => queryAll(tx, dashboardQueries(dashboard, {}))),
      false,
    )
}

interface Time {
  wall: number
  cpu: number
}

/** The time of a query, and the CPU time of the PostgreSQL process that executed it. */
async function timeOf(
  db: Database,
  organizationId: string,
  work: (db: Database) => Promise<unknown>,
): Promise<Time> {
  let backend = 0
  // One transaction, hence one process of PostgreSQL.
  return db.tenant(organizationId, testActor, async (tx) => {
    // The CPU time of parallel workers is not visible.
    await tx.trx.raw('set local max_parallel_workers_per_gather = 0')
    const { rows } = await tx.trx.raw('select pg_backend_pid() as pid')
    backend = rows[0].pid
    const [began, used] = [performance.now(), cpuOf(backend)]
    await work({ ...db, tenant: (_id, _actor, act) => act(tx) })
    return { wall: performance.now() - began, cpu: cpuOf(backend) - used }
  })
}

/** In milliseconds; Linux counts in hundredths of a second. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}
