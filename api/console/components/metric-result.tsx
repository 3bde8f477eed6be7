import { findMetric } from '../../../db/model/analytics/metrics/index.ts'
import type { AnalyticsQuery, AnalyticsResult } from '../../../workflows/shared/analytics.ts'
import { drillDown } from '../analytics/drill-down.ts'
import { groupText, type Panel, panelsOf, type Series } from '../analytics/panels.ts'
import { axisText, bucketText, type Value, valueText } from '../analytics/values.ts'
import { labelOf } from '../forms/field-spec.ts'
import { ColumnChart } from './column-chart.tsx'
import { ShareBar } from './share-bar.tsx'
import { Table } from './table.tsx'

interface Shown {
  result: AnalyticsResult
  filter: AnalyticsQuery['filter']
  /** The names of ids. */
  names: ReadonlyMap<string, string>
  /** What it is a chart of. */
  label: string
  /** Whether the values of each bucket are shown as a table too. */
  isWhole?: boolean
}

/** The result of a query: its total, and a chart with the numbers, which lead to what they were counted of. */
export function MetricResult(shown: Shown) {
  const { result } = shown
  const panels = panelsOf(result)
  return (
    <div class="metric">
      <Total result={result} />
      {panels.length === 0 && <p class="muted">Nothing in this period.</p>}
      {panels.map((panel) => (
        <PanelView key={panel.currency ?? ''} panel={panel} {...shown} />
      ))}
    </div>
  )
}

function Total({ result: { totals, converted, unit } }: { result: AnalyticsResult }) {
  return (
    <p class="figure">
      {totals.map(({ value, currency }) => (
        <strong key={currency ?? ''}>{valueText(value, unit, currency)}</strong>
      ))}
      {totals.length > 1 && converted && (
        <span class="muted">
          {converted.value === null
            ? 'not all currencies have a rate'
            : `${valueText(converted.value, unit, converted.currency)} in all, by today’s rates`}
        </span>
      )}
    </p>
  )
}

function PanelView({ panel, ...shown }: Shown & { panel: Panel }) {
  const { result, names, label, isWhole } = shown
  const isOverTime = result.interval !== null
  if (!isOverTime && result.group_by.length === 0) return null
  if (!isOverTime) return <Groups panel={panel} {...shown} />
  const series = panel.series.map((one) => ({ name: groupText(one, names), values: one.values }))
  return (
    <>
      <ColumnChart
        label={`${label}${panel.currency ? `, ${panel.currency}` : ''}, by ${result.interval}`}
        buckets={panel.buckets.map((start) => bucketText(start!, result))}
        series={series}
        text={(value) => valueText(value, result.unit, panel.currency)}
        axis={(value) => axisText(value, result.unit, panel.currency)}
        unit={result.unit}
        isStacked={series.length === 1 || isAdditive(result.metric)}
      />
      {isWhole && <Buckets panel={panel} {...shown} />}
    </>
  )
}

/** Whether the values of groups can be added up: averages, rates and percentiles cannot. */
const isAdditive = (metric: string) => ['count', 'sum'].includes(findMetric(metric)?.measure.type ?? '')

/** The list of what a value was counted of, as a link. */
function Cell({
  value,
  shown,
  panel,
  series: { group, isOther },
  from,
  to,
}: {
  value: Value
  shown: Pick<Shown, 'result' | 'filter'>
  panel: Panel
  series: Series
  from: string | null
  to: string
}) {
  const { result, filter } = shown
  const text = valueText(value, result.unit, panel.currency)
  const href =
    isOther || value === null || Number(value) === 0
      ? undefined
      : drillDown({ metric: result.metric, group, filter, currency: panel.currency, from, to })
  return href ? <a href={href}>{text}</a> : <span>{text}</span>
}

/** One row for each group, with its share of the greatest as a bar. */
function Groups({ panel, ...shown }: Shown & { panel: Panel }) {
  const { result, names, label } = shown
  const { from, to } = result
  const most = Math.max(0, ...panel.series.map(({ values }) => Number(values[0] ?? 0)))
  return (
    <Table
      label={label}
      rows={panel.series}
      keyOf={({ group, isOther }) => JSON.stringify([group, isOther])}
      columns={[
        {
          title: result.group_by.map(labelOf).join(', '),
          cell: (series) => (
            <span dir="auto" title={groupText(series, names)}>
              {groupText(series, names)}
            </span>
          ),
        },
        {
          title: 'Share of the most',
          cell: ({ values: [value] }) => <ShareBar of={most > 0 ? Number(value ?? 0) / most : 0} />,
        },
        {
          title: panel.currency ?? 'Value',
          align: 'right',
          cell: (series) => (
            <Cell
              value={series.values[0] ?? null}
              shown={shown}
              panel={panel}
              series={series}
              from={from}
              to={to}
            />
          ),
        },
      ]}
    />
  )
}

/** Rows of a table of buckets: a page must not become megabytes. */
const MOST_ROWS = 62

/** The values of each bucket, the newest first. */
function Buckets({ panel, ...shown }: Shown & { panel: Panel }) {
  const { result, names, label } = shown
  const starts = panel.buckets.map((bucket, i) => ({ bucket: bucket!, i }))
  const rows = starts.reverse().slice(0, MOST_ROWS)
  /** The first bucket may begin before the period. */
  const fromOf = (start: string) => (result.from !== null && start < result.from ? result.from : start)
  return (
    <>
      <Table
        label={`${label}${panel.currency ? `, ${panel.currency}` : ''}`}
        rows={rows}
        keyOf={({ bucket }) => bucket}
        columns={[
          {
            title: `${labelOf(result.interval!)} (${result.time_zone})`,
            cell: ({ bucket }) => <time dateTime={bucket}>{bucketText(bucket, result)}</time>,
          },
          ...panel.series.map((series) => ({
            title: panel.series.length === 1 ? (panel.currency ?? 'Value') : groupText(series, names),
            align: 'right' as const,
            cell: ({ bucket, i }: { bucket: string; i: number }) => (
              <Cell
                value={series.values[i] ?? null}
                shown={shown}
                panel={panel}
                series={series}
                from={fromOf(bucket)}
                to={panel.buckets[i + 1] ?? result.to}
              />
            ),
          })),
        ]}
      />
      {starts.length > MOST_ROWS && (
        <p class="muted">{`The newest ${MOST_ROWS} of ${starts.length}: the API returns all of them.`}</p>
      )}
    </>
  )
}
