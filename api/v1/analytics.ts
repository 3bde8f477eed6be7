import { z } from 'zod'
import { queryAll, queryAnalytics } from '../../db/analytics/analytics.ts'
import { DASHBOARDS, type Dashboard, dashboardQueries } from '../../db/model/analytics/dashboards.ts'
import { SUBJECTS } from '../../db/model/analytics/metric.ts'
import { describeMetric, METRIC_NAMES, METRICS } from '../../db/model/analytics/metrics/index.ts'
import { queryProblems } from '../../db/model/analytics/query.ts'
import {
  analyticsPeriod,
  analyticsQuery,
  analyticsResult,
  analyticsRow,
  INTERVALS,
  type MetricInfo,
} from '../../workflows/shared/analytics.ts'
import { ANALYTICS } from '../../workflows/shared/limits.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'

/**
 * Reports problems that a schema cannot find (names, values of filters, the period) in one response with the schema's.
 */
const checked = <T extends z.ZodObject>(schema: T, metric?: string) =>
  schema.superRefine(
    (query, ctx) => {
      const context = { now: new Date(), timezone: 'UTC' }
      for (const { path, message, type, hint } of queryProblems({ metric, ...query }, context))
        ctx.addIssue({ code: 'custom', path, message, params: { type, hint } })
    },
    { when: ({ value }) => typeof value === 'object' && value !== null },
  )

const row = analyticsRow.meta({ id: 'AnalyticsRow' })

/** The result of a chart. */
export const chartResult = analyticsResult.extend({ rows: z.array(row) })

const answer = z.object({ object: z.literal('analytics'), ...chartResult.shape }).meta({ id: 'Analytics' })

const metric = z
  .object({
    object: z.literal('metric'),
    name: z.string(),
    subject: z.enum(SUBJECTS),
    unit: z.string().meta({ description: '`count`, `money`, `percent`, `days`, `seconds`, `milliseconds`.' }),
    description: z.string(),
    formula: z
      .string()
      .meta({ description: 'How it is computed, of the columns of its rows; made from what computes it.' }),
    time: z.string().meta({ description: 'The time that puts a row into the period and a bucket.' }),
    dimensions: z
      .array(
        z
          .object({
            name: z.string(),
            description: z.string(),
            values: z.array(z.string()).nullable().meta({ description: 'The possible values; null: any.' }),
          })
          .meta({ id: 'MetricDimension' }),
      )
      .meta({ description: 'The names that `group_by` and `filter` accept.' }),
  } satisfies Record<keyof MetricInfo | 'object', z.ZodType>)
  .meta({ id: 'Metric' })

/** All metrics on one page. */
const CATALOGUE = wholeList(
  METRICS.map((one) => ({ object: 'metric', ...describeMetric(one) }) as z.input<typeof metric>),
)

const dashboard = z
  .object({
    object: z.literal('dashboard'),
    name: z.string(),
    title: z.string(),
    charts: z.array(
      z.object({ name: z.string(), title: z.string(), ...chartResult.shape }).meta({ id: 'Chart' }),
    ),
  })
  .meta({ id: 'Dashboard' })

const dashboardQuery = z.object({
  ...analyticsPeriod,
  interval: z.enum(INTERVALS).default('day').describe('The interval of the charts over time.'),
})

const KEPT =
  'Deleted records are not counted. Runs, requests and deliveries are counted as long as they are kept: `kept_since` says since when.'

export const analyticsRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/analytics/metrics',
    scope: 'analytics:read',
    id: 'listMetrics',
    tag: 'Analytics',
    summary: 'List metrics',
    description: 'Lists the metrics that can be queried, each with its dimensions.',
    response: { status: 200, schema: listEnvelope(metric) },
    handler: async () => CATALOGUE,
  }),
  route({
    method: 'POST',
    path: '/analytics/query',
    scope: 'analytics:read',
    id: 'queryAnalytics',
    tag: 'Analytics',
    summary: 'Query a metric',
    description: `Computes a metric for a period: in total, by \`group_by\`, by \`interval\`. Each group has a row in each bucket, even if the value is 0. Amounts are never added across currencies: each currency has its own rows and total. A response has at most ${ANALYTICS.rows.toLocaleString('en')} rows, and ${ANALYTICS.buckets.toLocaleString('en')} buckets. ${KEPT}`,
    idempotent: false,
    body: checked(
      analyticsQuery.extend({
        metric: analyticsQuery.shape.metric.meta({ enum: METRIC_NAMES }),
      }),
    ),
    response: { status: 200, schema: answer },
    example: { metric: 'deals.won_value', group_by: ['owner_id'], interval: 'month', last: '365d' },
    handler: async ({ body, tenant }) => ({
      object: 'analytics',
      ...(await tenant((tx) => queryAnalytics(tx, body))),
    }),
  }),
  ...DASHBOARDS.map(dashboardRoute),
]

function dashboardRoute(one: Dashboard): Route {
  const { name, title, description, charts } = one
  return route({
    method: 'GET',
    path: `/analytics/${name}`,
    scope: 'analytics:read',
    id: `get${title[0]}${name.slice(1)}Analytics`,
    tag: 'Analytics',
    summary: `Retrieve the dashboard of ${name}`,
    description: `${description} Its charts are queries of \`POST /v1/analytics/query\`; charts of the present state ignore the period. ${KEPT}`,
    query: checked(dashboardQuery),
    response: { status: 200, schema: dashboard },
    handler: async ({ query, tenant }) => {
      const results = await tenant((tx) => queryAll(tx, dashboardQueries(one, query), { part: 'query' }))
      return {
        object: 'dashboard',
        name,
        title,
        charts: charts.map((chart, index) => ({
          name: chart.name,
          title: chart.title,
          ...results[index]!,
        })),
      }
    },
  })
}
