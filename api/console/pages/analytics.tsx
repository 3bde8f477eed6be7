import { DASHBOARDS, type Dashboard } from '../../../db/model/analytics/dashboards.ts'
import { findMetric } from '../../../db/model/analytics/metrics/index.ts'
import type { AnalyticsResult } from '../../../workflows/shared/analytics.ts'
import { groupNames } from '../analytics/names.ts'
import { intervalFor, type Period, PeriodFilters, periodOf, periodQuery } from '../analytics/period.tsx'
import { Card } from '../components/card.tsx'
import { Filters } from '../components/filters.tsx'
import { MetricResult } from '../components/metric-result.tsx'
import { PageHeader } from '../components/page-header.tsx'
import { Refusal } from '../components/refusal.tsx'
import { Tabs } from '../components/tabs.tsx'
import type { ConsoleRoute, Page, View } from '../route.ts'

type Charted = AnalyticsResult & { name: string; title: string }

const ROOT = '/analytics'

/** The parts of analytics: the ready dashboards, a metric by itself, and what was saved. */
const TABS = [
  ...DASHBOARDS.map(({ name, title }) => ({ href: `${ROOT}/${name}`, label: title })),
  { href: `${ROOT}/explore`, label: 'One metric' },
  { href: `${ROOT}/reports`, label: 'Reports' },
]

export const AnalyticsTabs = ({ current }: { current: string }) => (
  <Tabs label="Analytics" tabs={TABS} current={current} />
)

/** The ready dashboards, for a period that is chosen. */
export const analyticsPages: ConsoleRoute[] = [
  { method: 'GET', path: ROOT, handler: async () => ({ redirect: TABS[0]!.href }) },
  ...DASHBOARDS.map(
    (dashboard): ConsoleRoute => ({
      method: 'GET',
      path: `${ROOT}/${dashboard.name}`,
      handler: (view) => page(view, dashboard),
    }),
  ),
]

async function page(view: View, dashboard: Dashboard): Promise<Page> {
  const { name, title, description } = dashboard
  const period = periodOf(view.query)
  const interval = intervalFor(period)
  const query = new URLSearchParams([...periodQuery(period), ['interval', interval]])
  const answer = await view.call('GET', `/app/v1/analytics/${name}?${query}`)
  const charts = answer.status < 400 ? (answer.body as { charts: Charted[] }).charts : undefined
  const names = await groupNames(view, charts ?? [])
  return {
    title,
    status: answer.status,
    content: (
      <>
        <PageHeader title="Analytics" about={description} />
        <AnalyticsTabs current={`${ROOT}/${name}`} />
        <Filters>
          <PeriodFilters none="30 days (default)" />
        </Filters>
        {!charts && <Refusal of={answer} />}
        {charts && (
          <div class="charts">
            {charts.map((chart) => (
              <Card
                key={chart.name}
                title={chart.title}
                actions={
                  <a href={exploreHref(chart, period)}>
                    Details<span class="hidden">{` of ${chart.title}`}</span>
                  </a>
                }
              >
                <MetricResult result={chart} filter={{}} names={names} label={chart.title} />
              </Card>
            ))}
          </div>
        )}
      </>
    ),
  }
}

/** The same chart on a page of its own, with its table. Metrics of the present state ignore the period. */
function exploreHref({ metric, group_by, interval }: AnalyticsResult, period: Period): string {
  const isPresent = findMetric(metric)?.present && interval === null
  return `${ROOT}/explore?${new URLSearchParams([
    ['metric', metric],
    ...group_by.map((dimension): [string, string] => ['group_by', dimension]),
    ...(interval ? [['interval', interval] as [string, string]] : []),
    ...(isPresent ? [] : periodQuery(period)),
  ])}`
}
