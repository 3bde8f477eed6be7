import { z } from 'zod'
import { queryAll } from '../../db/analytics/analytics.ts'
import {
  createReport,
  deleteReport,
  getReport,
  listReports,
  type Report,
  type SavedChart,
  updateReport,
} from '../../db/analytics/reports.ts'
import { findMetric, METRIC_NAMES } from '../../db/model/analytics/metrics/index.ts'
import { queryProblems } from '../../db/model/analytics/query.ts'
import { actor } from '../../db/model/records/schemas.ts'
import {
  type AnalyticsQuery,
  type AnalyticsResult,
  analyticsPeriod,
  analyticsQuery,
} from '../../workflows/shared/analytics.ts'
import { ANALYTICS } from '../../workflows/shared/limits.ts'
import { deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { chartResult } from './analytics.ts'
import { withETag } from './record-shapes.ts'

const tag = 'Analytics'
const path = '/analytics/reports'
const byId = {
  tag,
  path: `${path}/{report_id}`,
  params: z.object({ report_id: z.uuid().toLowerCase().describe('The id of the report.') }),
}

const query = analyticsQuery.extend({ metric: analyticsQuery.shape.metric.meta({ enum: METRIC_NAMES }) })

const chart = z.strictObject({ title: z.string().trim().min(1).max(200), query })

const charts = z
  .array(chart)
  .min(1)
  .max(ANALYTICS.charts)
  .superRefine(
    (given, ctx) => {
      for (const [index, one] of given.entries())
        for (const { path, message, type, hint } of queryProblems(one?.query ?? {}, {
          now: new Date(),
          timezone: 'UTC',
        }))
          ctx.addIssue({ code: 'custom', path: [index, 'query', ...path], message, params: { type, hint } })
    },
    { when: ({ value }) => Array.isArray(value) },
  )
  .describe('Queries of `POST /v1/analytics/query`, each with a title, in their order.')

const described = {
  name: z.string().trim().min(1).max(200),
  description: z.string().trim().max(2_000).nullable(),
}

const newReport = z
  .strictObject({ ...described, description: described.description.default(null), charts })
  .meta({ id: 'ReportCreate' })

const reportPatch = z
  .strictObject({ ...described, charts })
  .partial()
  .meta({ id: 'ReportUpdate' })

const shape = {
  object: z.literal('report'),
  id: z.uuid(),
  ...described,
  charts: z.array(z.object({ title: z.string(), query })),
  version: z.int(),
  created_by: actor,
  updated_by: actor,
  created_at: z.date(),
  updated_at: z.date(),
}

const report = z.object(shape).meta({ id: 'Report' })

const reportWithResults = z
  .object({
    ...shape,
    charts: z.array(
      z.object({
        title: z.string(),
        query,
        result: chartResult.nullable().describe('Null without `results=true`, and with a `problem`.'),
        problem: z
          .string()
          .nullable()
          .describe('Why the chart has no result, such as too many buckets in a period that has grown.'),
      }),
    ),
  })
  .meta({ id: 'ReportWithResults' })

const PERIOD = ['from', 'to', 'last', 'time_zone'] as const

const reportQuery = z
  .object({
    results: z.enum(['true', 'false']).default('false').describe('Whether to compute the charts.'),
    ...analyticsPeriod,
  })
  .superRefine((given, ctx) => {
    if (given.results === 'false')
      for (const name of PERIOD)
        if (given[name] !== undefined)
          ctx.addIssue({ code: 'custom', path: [name], message: 'is only for the results: add results=true' })
    for (const { path, message, type, hint } of queryProblems(given, { now: new Date(), timezone: 'UTC' }))
      ctx.addIssue({ code: 'custom', path, message, params: { type, hint } })
  })

const present = (row: Report) => ({ object: 'report' as const, ...row })

export const reportRoutes: Route[] = [
  route({
    method: 'GET',
    path,
    scope: 'analytics:read',
    id: 'listReports',
    tag,
    summary: 'List reports',
    description: 'Newest first, without their results.',
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(report) },
    handler: async ({ query, tenant }) => {
      const page = await tenant((tx) => listReports(tx, { ...query, offset: offsetOf(query) }))
      return presentList({ ...page, data: page.data.map(present) })
    },
  }),
  route({
    method: 'POST',
    path,
    scope: 'analytics:write',
    id: 'createReport',
    grows: true,
    tag,
    summary: 'Create a report',
    description: `Saves charts under a name, for everybody who may read analytics. An organization has at most ${ANALYTICS.reports}.`,
    body: newReport,
    response: { status: 201, schema: report },
    example: {
      name: 'Sales meeting',
      charts: [
        { title: 'Open deals', query: { metric: 'deals.open_value', group_by: ['stage'] } },
        { title: 'Won by month', query: { metric: 'deals.won_value', interval: 'month', last: '365d' } },
      ],
    },
    etag: true,
    handler: async ({ body, tenant, setHeader }) =>
      withETag(setHeader, present(await tenant((tx) => createReport(tx, body)))),
  }),
  route({
    ...byId,
    method: 'GET',
    scope: 'analytics:read',
    id: 'getReport',
    summary: 'Retrieve a report',
    description:
      'With `results=true` the charts are computed. A period replaces that of each chart, except of charts of the present state.',
    query: reportQuery,
    response: { status: 200, schema: reportWithResults },
    etag: true,
    handler: readReport,
  }),
  route({
    ...byId,
    method: 'PATCH',
    scope: 'analytics:write',
    id: 'updateReport',
    grows: true,
    summary: 'Update a report',
    description: 'Absent members are unchanged; `charts` is replaced as a whole.',
    body: reportPatch,
    response: { status: 200, schema: report },
    example: { name: 'Weekly sales meeting' },
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, tenant, setHeader }) => {
      const accepted = ifMatch(headers)
      return withETag(
        setHeader,
        present(await tenant((tx) => updateReport(tx, params.report_id, body, accepted))),
      )
    },
  }),
  route({
    ...byId,
    method: 'DELETE',
    scope: 'analytics:write',
    id: 'deleteReport',
    summary: 'Delete a report',
    response: deletion('report'),
    ifMatch: true,
    handler: async ({ params: { report_id: id }, headers, tenant }) => {
      const accepted = ifMatch(headers)
      await tenant((tx) => deleteReport(tx, id, accepted))
      return { object: 'report', id, deleted: true }
    },
  }),
]

type Read = Pick<RouteRequest<{ report_id: string }>, 'params' | 'tenant' | 'setHeader' | 'caller'> & {
  query: z.output<typeof reportQuery>
}

async function readReport({ params, query: { results, ...period }, caller, tenant, setHeader }: Read) {
  const { now, timezone } = { now: new Date(), timezone: caller.organization.timezone }
  const { charts, ...found } = await tenant((tx) => getReport(tx, params.report_id))
  const planned = charts.map((one) => {
    const query = withPeriod(one.query, period)
    const [first] = results === 'true' ? queryProblems(query, { now, timezone }) : []
    return { ...one, query, problem: first?.message ?? null }
  })
  const computed = planned.filter(({ problem }) => results === 'true' && problem === null)
  const answers = await tenant((tx) =>
    queryAll(
      tx,
      computed.map(({ query }) => query),
      { now },
    ),
  )
  const resultOf = new Map<SavedChart, AnalyticsResult>(computed.map((one, index) => [one, answers[index]!]))
  return withETag(setHeader, {
    object: 'report' as const,
    ...found,
    charts: planned.map((one) => ({ ...one, result: resultOf.get(one) ?? null })),
  })
}

/** A given period replaces the whole period of a chart, except of one of the present state. */
function withPeriod(
  query: AnalyticsQuery,
  period: Partial<Record<(typeof PERIOD)[number], string | undefined>>,
): AnalyticsQuery {
  const { from, to, last, time_zone = query.time_zone } = period
  const isPresent = findMetric(query.metric)?.present && query.interval === undefined
  if (isPresent || (from ?? to ?? last) === undefined) return { ...query, time_zone }
  return { ...query, from, to, last, time_zone }
}
