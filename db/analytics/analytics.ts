import type { AnalyticsQuery, AnalyticsResult } from '../../workflows/shared/analytics.ts'
import { ANALYTICS } from '../../workflows/shared/limits.ts'
import { getOrganization, type Organization } from '../access/organization.ts'
import { answerOf } from '../model/analytics/answer.ts'
import type { Cell } from '../model/analytics/cell.ts'
import { type ResolvedQuery, resolveQuery } from '../model/analytics/query.ts'
import { AppError, invalid } from '../model/errors.ts'
import type { Rates } from '../model/records/exchange-rates.ts'
import { namesOf, stageNames } from '../model/records/pipelines/pipeline.ts'
import { PLANNED_ANEW } from '../postgres/prepared.ts'
import { isStatementTimeout } from '../postgres/sql-state.ts'
import { savepoint, type Tenant } from '../postgres/tenancy.ts'
import { readRates } from '../records/exchange-rates.ts'
import { listPipelines } from '../records/pipelines/pipelines.ts'
import { statementOf } from './statement.ts'

interface QueryOptions {
  now?: Date
  /** The part of the request with the query, for problems. */
  part?: 'body' | 'query'
}

/**
 * Executes a query on the organization's data. Throws `validation_error` with all problems of the query, `unavailable`
 * if it takes too long.
 */
export async function queryAnalytics(
  tx: Tenant,
  query: AnalyticsQuery,
  options?: QueryOptions,
): Promise<AnalyticsResult> {
  const [result] = await queryAll(tx, [query], options)
  return result!
}

/** Executes several queries. */
export async function queryAll(
  tx: Tenant,
  queries: AnalyticsQuery[],
  { now = new Date(), part = 'body' }: QueryOptions = {},
): Promise<AnalyticsResult[]> {
  const organization = await getOrganization(tx)
  const context = { now, timezone: organization.timezone, values: await valuesFor(tx, queries) }
  const all = queries.map((query) => resolveQuery(query, context, part))
  const isMoney = all.some(({ metric }) => metric.currency)
  const rates = isMoney ? await readRates(tx) : { base: organization.currency, rates: {} }
  return scanning(tx, async (scan) => {
    const results: AnalyticsResult[] = []
    const deadline = performance.now() + ANALYTICS.ms
    for (const resolved of all) {
      // Another scan can take the same time again.
      if (performance.now() > deadline) throw tooSlow()
      results.push(resultOf(resolved, await cellsOf(scan, resolved), { organization, rates, now }))
    }
    return results
  })
}

/** The values that the organization defines, if a query may filter by them: another one would count nothing. */
async function valuesFor(tx: Tenant, queries: AnalyticsQuery[]): Promise<Record<string, readonly string[]>> {
  if (!queries.some(({ filter }) => 'stage' in filter || 'pipeline' in filter)) return {}
  const pipelines = await listPipelines(tx)
  return { stage: stageNames(pipelines), pipeline: namesOf(pipelines) }
}

/**
 * Runs scans with their own parameters of PostgreSQL. A covering index is read instead of the larger table, which the
 * default random_page_cost rules out. JIT compilation is off, and a scan has a time limit. They are set in a savepoint,
 * because a node runs in the transaction of its segment.
 */
async function scanning<T>(tx: Tenant, work: (tx: Tenant) => Promise<T>): Promise<T> {
  const parameters = [
    `statement_timeout = ${ANALYTICS.ms}`,
    'random_page_cost = 1.1',
    'jit = off',
    "work_mem = '32MB'",
  ].map((parameter) => `set local ${parameter}`)
  const defaults = parameters.map((parameter) => parameter.replace(/ = .*/, ' to default'))
  try {
    return await savepoint(tx, async (inner) => {
      await inner.trx.raw(parameters.join('; '))
      const result = await work(inner)
      await inner.trx.raw(defaults.join('; '))
      return result
    })
  } catch (error) {
    if (!isStatementTimeout(error)) throw error
    throw tooSlow()
  }
}

const tooSlow = () =>
  new AppError('unavailable', `the query takes more than ${ANALYTICS.ms / 1_000} s`, {
    hint: 'use a shorter period, or a filter',
  })

async function cellsOf(tx: Tenant, resolved: ResolvedQuery): Promise<Cell[]> {
  const { sql, bindings } = statementOf(resolved, tx.organizationId)
  const { rows } = await tx.trx.raw<{ rows: Cell[] }>(sql, bindings as never).options(PLANNED_ANEW)
  return rows
}

function resultOf(
  resolved: ResolvedQuery,
  cells: Cell[],
  { organization, rates, now }: { organization: Organization; rates: Rates; now: Date },
): AnalyticsResult {
  const { metric, groupBy, interval, timezone, from, to } = resolved
  const answer = answerOf(resolved, cells, rates)
  if (answer.rows.length > 2 * ANALYTICS.rows)
    throw invalid([
      {
        loc: ['body', 'filter'],
        type: 'too_many_rows',
        msg: `the response would have ${answer.rows.length} rows, because there are many currencies`,
        hint: 'filter by currency, or use a longer interval',
      },
    ])
  const { retention } = metric.source
  const kept = retention && new Date(now.getTime() - organization[retention] * 86_400_000)
  return {
    metric: metric.name,
    unit: metric.unit,
    from: from === null ? null : new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    time_zone: timezone,
    interval,
    group_by: groupBy,
    kept_since: kept?.toISOString() ?? null,
    ...answer,
  }
}
