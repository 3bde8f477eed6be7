import type { AnalyticsQuery, AnalyticsResult } from '../../../workflows/shared/analytics.ts'
import { groupNames } from '../analytics/names.ts'
import { PeriodFilters, periodOf, periodQuery } from '../analytics/period.tsx'
import { ActionButton, ConfirmButton, LinkButton } from '../components/button.tsx'
import { Card } from '../components/card.tsx'
import { Empty } from '../components/empty.tsx'
import { Filters } from '../components/filters.tsx'
import { MetricResult } from '../components/metric-result.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { type FormState, SchemaForm } from '../components/schema-form.tsx'
import { Paging, Table } from '../components/table.tsx'
import { Time } from '../components/time.tsx'
import { mayCall } from '../forms/allowed.ts'
import { errorsOf } from '../forms/errors.ts'
import { fieldsOf } from '../forms/schema-fields.ts'
import { storedBefore, toBody, toJson } from '../forms/to-body.ts'
import { pageOf } from '../list-page.ts'
import type { ConsoleRoute, List, Page, View } from '../route.ts'
import { AnalyticsTabs } from './analytics.tsx'

interface Chart {
  title: string
  query: AnalyticsQuery
  result?: AnalyticsResult | null
  problem?: string | null
}

export interface Report {
  id: string
  name: string
  description: string | null
  charts: Chart[]
  version: number
  updated_at: string
}

type Answer = Awaited<ReturnType<View['call']>>

export const REPORTS = '/analytics/reports'
const NAMES = ['name', 'description']
const FIELDS = fieldsOf('updateReport', NAMES)

/** Saved charts: lists of them, and each with its results for a period. */
export const reportPages: ConsoleRoute[] = [
  {
    method: 'GET',
    path: REPORTS,
    handler: async (view) =>
      listPage(await view.read<List<Report>>(pageOf(view, '/app/v1/analytics/reports'))),
  },
  {
    method: 'POST',
    path: `${REPORTS}/charts`,
    async handler(view) {
      const saved = await saveChart(view)
      if (saved.status >= 400) return refusedPage(saved)
      return { redirect: `${REPORTS}/${(saved.body as unknown as Report).id}?done=saved` }
    },
  },
  { method: 'GET', path: `${REPORTS}/{report_id}`, handler: (view) => onePage(view, {}) },
  {
    method: 'POST',
    path: `${REPORTS}/{report_id}`,
    async handler(view) {
      const { call, form, params } = view
      const body = toBody(FIELDS, form, { stored: storedBefore(form) })
      const headers = { 'if-match': `"${form.get('version')}"` }
      const answer = await call('PATCH', apiPath(params.report_id!), body, headers)
      if (answer.status < 400) return { redirect: `${REPORTS}/${params.report_id}?done=saved` }
      return onePage(view, { typed: form, errors: errorsOf(answer, NAMES) }, answer.status)
    },
  },
  {
    method: 'POST',
    path: `${REPORTS}/{report_id}/remove-chart`,
    async handler({ call, read, form, params }) {
      const report = await read<Report>(apiPath(params.report_id!))
      const charts = savedCharts(report).filter((_, i) => String(i) !== form.get('chart'))
      const headers = { 'if-match': `"${form.get('version')}"` }
      const answer = await call('PATCH', apiPath(report.id), { charts }, headers)
      return answer.status >= 400 ? refusedPage(answer) : { redirect: `${REPORTS}/${report.id}?done=saved` }
    },
  },
  {
    method: 'POST',
    path: `${REPORTS}/{report_id}/delete`,
    async handler({ change, params }) {
      await change('DELETE', apiPath(params.report_id!))
      return { redirect: `${REPORTS}?done=removed` }
    },
  },
]

const apiPath = (id: string) => `/app/v1/analytics/reports/${encodeURIComponent(id)}`

/** The charts as they are stored, without their results. */
const savedCharts = ({ charts }: Report) => charts.map(({ title, query }) => ({ title, query }))

/** Adds the chart of a form to the report that it names, or to a new one. */
async function saveChart({ form, call, read }: View): Promise<Answer> {
  const chart = { title: form.get('title'), query: toJson(form.get('query')) }
  const id = form.get('report_id')
  if (!id)
    return call('POST', '/app/v1/analytics/reports', {
      name: form.get('name').trim() || chart.title,
      charts: [chart],
    })
  const report = await read<Report>(apiPath(id))
  const charts = [...savedCharts(report), chart]
  return call('PATCH', apiPath(id), { charts }, { 'if-match': `"${report.version}"` })
}

const refusedPage = (answer: Answer): Page => ({
  title: 'Not saved',
  status: answer.status,
  content: (
    <>
      <PageHeader title="Not saved" crumbs={[{ href: REPORTS, label: 'Reports' }]} />
      <Refusal of={answer} />
    </>
  ),
})

const listPage = (reports: List<Report>): Page => ({
  title: 'Reports',
  content: (
    <>
      <PageHeader
        title="Analytics"
        about="Charts that somebody saved, for everybody who may read analytics."
      />
      <AnalyticsTabs current={REPORTS} />
      {reports.data.length === 0 ? (
        <Empty icon="chart-column" title="No report yet">
          <p>Choose a metric, and save its chart: a report has those that belong together.</p>
          <LinkButton href="/analytics/explore" look="primary">
            Choose a metric
          </LinkButton>
        </Empty>
      ) : (
        <>
          <Table
            label="Reports"
            rows={reports.data}
            keyOf={({ id }) => id}
            columns={[
              {
                title: 'Name',
                cell: ({ id, name }) => (
                  <a href={`${REPORTS}/${id}`} dir="auto" title={name}>
                    {name}
                  </a>
                ),
              },
              {
                title: 'Charts',
                cell: ({ charts }) => {
                  const titles = charts.map(({ title }) => title).join(', ')
                  return (
                    <span dir="auto" title={titles.slice(0, 400)}>
                      {titles.slice(0, 120)}
                    </span>
                  )
                },
              },
              { title: 'Changed', cell: ({ updated_at }) => <Time at={updated_at} /> },
            ]}
          />
          <Paging list={reports} />
        </>
      )}
    </>
  ),
})

async function onePage(view: View, state: FormState, status?: number): Promise<Page> {
  const path = apiPath(view.params.report_id!)
  const period = periodOf(view.query)
  const query = new URLSearchParams([['results', 'true'], ...periodQuery(period)])
  const computed = await view.call('GET', `${path}?${query}`)
  const isComputed = computed.status < 400
  // A period that is refused is no reason to show nothing.
  const report = isComputed ? (computed.body as unknown as Report) : await view.read<Report>(path)
  const names = await groupNames(
    view,
    report.charts.map(({ result }) => result ?? null),
  )
  const may = mayCall(view.session!.role, 'updateReport')
  const here = `${REPORTS}/${report.id}`
  return {
    title: report.name,
    status: status ?? computed.status,
    content: (
      <>
        <PageHeader
          title={<span dir="auto">{report.name}</span>}
          crumbs={[{ href: REPORTS, label: 'Reports' }]}
          about={report.description && <span dir="auto">{report.description}</span>}
        >
          {may && (
            <ConfirmButton
              action={`${here}/delete`}
              question={`Deletes the report “${report.name}”. What it counts stays.`}
              confirm="Delete the report"
              look="danger"
            >
              Delete
            </ConfirmButton>
          )}
        </PageHeader>
        <Filters>
          <PeriodFilters none="as saved" />
        </Filters>
        {!isComputed && <Refusal of={computed} />}
        <div class="charts">
          {report.charts.map((chart, i) => (
            <Card
              key={`${chart.title} ${i}`}
              title={<span dir="auto">{chart.title}</span>}
              actions={
                <>
                  <a href={exploreHref(chart)}>
                    Details<span class="hidden">{` of ${chart.title}`}</span>
                  </a>
                  {may && report.charts.length > 1 && (
                    <ActionButton
                      action={`${here}/remove-chart`}
                      fields={{ chart: String(i), version: String(report.version) }}
                    >
                      Remove
                    </ActionButton>
                  )}
                </>
              }
            >
              {chart.problem && <p class="notice amber">{chart.problem}</p>}
              {chart.result && (
                <MetricResult
                  result={chart.result}
                  filter={chart.query.filter}
                  names={names}
                  label={chart.title}
                />
              )}
            </Card>
          ))}
        </div>
        {may && (
          <Card title="Name and description">
            <SchemaForm
              action={here}
              fields={FIELDS}
              state={{
                stored: { name: report.name, description: report.description ?? '' },
                ...state,
              }}
              button="Save"
              label="Name and description"
            >
              <input
                type="hidden"
                name="version"
                value={state.typed?.get('version') || String(report.version)}
              />
            </SchemaForm>
          </Card>
        )}
      </>
    ),
  }
}

/** The query of a chart in the address of its own page. */
function exploreHref({ query }: Chart): string {
  const { metric, group_by, interval, filter, last, from, to } = query
  const parameters: [string, string | undefined][] = [
    ['metric', metric],
    ...group_by.map((dimension): [string, string] => ['group_by', dimension]),
    ['interval', interval],
    ['last', last],
    ['from', from],
    ['to', to],
    ...Object.entries(filter).flatMap(([dimension, values]) =>
      [values]
        .flat()
        .map((value): [string, string | undefined] => [`filter.${dimension}`, value ?? undefined]),
    ),
  ]
  const given = parameters.filter((one): one is [string, string] => Boolean(one[1]))
  return `/analytics/explore?${new URLSearchParams(given)}`
}
