import { METRICS } from '../../../db/model/analytics/metrics/index.ts'
import {
  type AnalyticsQuery,
  type AnalyticsResult,
  INTERVALS,
  type MetricInfo,
} from '../../../workflows/shared/analytics.ts'
import { ANALYTICS } from '../../../workflows/shared/limits.ts'
import { groupNames } from '../analytics/names.ts'
import { PeriodFilters, periodOf } from '../analytics/period.tsx'
import { Card } from '../components/card.tsx'
import { ChoiceFilter, Filters } from '../components/filters.tsx'
import { MetricResult } from '../components/metric-result.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { PostForm } from '../components/post-form.tsx'
import { Refusal } from '../components/refusal.tsx'
import { mayCall } from '../forms/allowed.ts'
import { labelOf } from '../forms/field-spec.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { AnalyticsTabs } from './analytics.tsx'
import { REPORTS, type Report } from './reports.tsx'

export const EXPLORE = '/analytics/explore'

/** `filter.stage=won` is a filter of the query; several values of a dimension are a list. */
const FILTER = /^filter\.(\w{1,100})$/

/** Groups over time: each is a column of the table. */
const GROUPS_OVER_TIME = 6

/** One metric, grouped, over time and filtered as one likes, with its table; and the way to save it. */
export const analyticsExplorePages: ConsoleRoute[] = [
  { method: 'GET', path: EXPLORE, handler: (view) => page(view) },
]

/** The query in the address, as the API takes it. */
function queryIn(query: URLSearchParams): Record<string, unknown> & Pick<AnalyticsQuery, 'filter'> {
  const filter: AnalyticsQuery['filter'] = {}
  for (const [name, value] of query) {
    const [, dimension] = FILTER.exec(name) ?? []
    if (dimension === undefined || value === '') continue
    const before = filter[dimension]
    filter[dimension] = before === undefined ? value : [before, value].flat()
  }
  const groups = query.getAll('group_by').filter(Boolean)
  const interval = query.get('interval')
  return {
    metric: query.get('metric') || METRICS[0]!.name,
    group_by: groups,
    ...(interval && { interval }),
    ...(interval && groups.length > 0 && { limit: GROUPS_OVER_TIME }),
    ...periodOf(query),
    filter,
  }
}

/** A query of the API is a POST, which changes nothing: a page that is opened sends the token of its session. */
const ask = (view: View, query: object) =>
  view.call('POST', '/app/v1/analytics/query', query, { 'x-csrf-token': view.session!.csrf_token })

async function page(view: View): Promise<Page> {
  const query = queryIn(view.query)
  const [answer, metrics, reports] = await Promise.all([
    ask(view, query),
    view.read<List<MetricInfo>>('/app/v1/analytics/metrics'),
    view.read<List<Report>>('/app/v1/analytics/reports?limit=200'),
  ])
  const result = answer.status < 400 ? (answer.body as unknown as AnalyticsResult) : undefined
  const names = await groupNames(view, [result ?? null])
  const metric = metrics.data.find(({ name }) => name === query.metric)
  const label = metric ? titleOfMetric(metric.name) : 'One metric'
  return {
    title: label,
    status: answer.status,
    content: (
      <>
        <PageHeader title="Analytics" about="One metric, with the table behind its chart." />
        <AnalyticsTabs current={EXPLORE} />
        <QueryForm metrics={metrics.data} metric={metric} chosen={String(query.metric)} />
        {!result && <Refusal of={answer} />}
        {result && metric && (
          <Card title={label}>
            <p class="muted">
              {metric.description} <code>{metric.formula}</code>
            </p>
            <MetricResult result={result} filter={query.filter} names={names} label={label} isWhole />
            {result.kept_since && (
              <p class="muted">{`Counted as long as it is kept: since ${result.kept_since.slice(0, 10)}.`}</p>
            )}
          </Card>
        )}
        {result && mayCall(view.session!.role, 'createReport') && (
          <Save query={query} label={label} reports={reports.data} />
        )}
      </>
    ),
  }
}

/** `deals.won_value` as `Deals: won value`. */
const titleOfMetric = (name: string) => {
  const [table = '', measure = ''] = name.split('.')
  return `${labelOf(table)}: ${measure.replaceAll('_', ' ')}`
}

function QueryForm(props: { metrics: MetricInfo[]; metric: MetricInfo | undefined; chosen: string }) {
  const { metrics, metric, chosen } = props
  const subjects = [...new Set(metrics.map(({ subject }) => subject))]
  const dimensions = metric?.dimensions ?? []
  return (
    <Filters>
      <label>
        Metric
        <select name="metric">
          {!metric && <option value={chosen}>{chosen}</option>}
          {subjects.map((subject) => (
            <optgroup label={labelOf(subject)} key={subject}>
              {metrics
                .filter((one) => one.subject === subject)
                .map(({ name }) => (
                  <option value={name} selected={name === chosen} key={name}>
                    {titleOfMetric(name)}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </label>
      <ChoiceFilter
        name="group_by"
        label="By"
        none="nothing"
        choices={dimensions.map(({ name }) => ({ id: name, name: labelOf(name) }))}
      />
      <ChoiceFilter name="interval" label="Over time by" none="the whole period" choices={INTERVALS} />
      <PeriodFilters />
      {dimensions
        .filter(({ values }) => values)
        .map(({ name, values }) => (
          <ChoiceFilter
            key={name}
            name={`filter.${name}`}
            label={`Only ${labelOf(name).toLowerCase()}`}
            choices={values!}
          />
        ))}
    </Filters>
  )
}

/** A chart is saved into a report that exists, or into a new one. */
const Save = ({ query, label, reports }: { query: object; label: string; reports: Report[] }) => (
  <Card title="Save the chart">
    <PostForm action={`${REPORTS}/charts`} class="form" label="Save the chart">
      <input type="hidden" name="query" value={JSON.stringify(query)} />
      <div class="field">
        <label for="f-title">Title</label>
        <input id="f-title" name="title" type="text" value={label} required dir="auto" />
      </div>
      {reports.length > 0 && (
        <div class="field">
          <label for="f-report">Report</label>
          <select id="f-report" name="report_id">
            <option value="">a new one</option>
            {reports.map(({ id, name }) => (
              <option value={id} key={id}>
                {name}
              </option>
            ))}
          </select>
        </div>
      )}
      <div class="field">
        <label for="f-name">Name of the new report</label>
        <input id="f-name" name="name" type="text" dir="auto" />
        <p class="help">{`A report has at most ${ANALYTICS.charts} charts. Everybody who may read analytics sees it.`}</p>
      </div>
      <div class="form-actions">
        <button type="submit" class="button primary">
          Save the chart
        </button>
      </div>
    </PostForm>
  </Card>
)
