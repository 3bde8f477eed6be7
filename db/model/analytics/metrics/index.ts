import type { MetricInfo } from '../../../../workflows/shared/analytics.ts'
import type { Metric } from '../metric.ts'
import { ACTIVITY_METRICS } from './activities.ts'
import { PIPELINE_METRICS } from './pipeline.ts'
import { RECORD_METRICS } from './records.ts'
import { WEBHOOK_METRICS } from './webhooks.ts'
import { WORKFLOW_METRICS } from './workflows.ts'

/** The catalogue of metrics, which queries, their validation, OpenAPI and nodes read. */
export const METRICS: readonly Metric[] = [
  ...PIPELINE_METRICS,
  ...RECORD_METRICS,
  ...ACTIVITY_METRICS,
  ...WORKFLOW_METRICS,
  ...WEBHOOK_METRICS,
]

export const METRIC_NAMES = METRICS.map(({ name }) => name)

const byName = new Map(METRICS.map((metric) => [metric.name, metric]))

export const findMetric = (name: string): Metric | undefined => byName.get(name)

/** A metric as the API shows it. */
export const describeMetric = (metric: Metric): MetricInfo => {
  const { name, subject, unit, description, time, source } = metric
  return {
    name,
    subject,
    unit,
    description,
    formula: formulaOf(metric),
    time: time === 'id' ? 'created_at' : time,
    dimensions: Object.entries(source.dimensions).map(([dimension, { description, values }]) => ({
      name: dimension,
      description,
      values: values ? [...values] : null,
    })),
  }
}

/** The formula of a metric, for people: made from its SQL, so that it cannot say anything else. */
function formulaOf({ name, measure, where }: Metric): string {
  const [table] = name.split('.')
  const rows = where === undefined ? table : `${table} where ${where}`
  return `${aggregateOf(measure)} of ${rows}`
    .replaceAll(/\bt\./g, '')
    .replaceAll(/\(date_part\('epoch', (\w+)\) - date_part\('epoch', (\w+)\)\)/g, 'seconds($2, $1)')
    .replaceAll(/\(\(([^()]*)\)\)/g, '($1)')
}

function aggregateOf(measure: Metric['measure']): string {
  switch (measure.type) {
    case 'count':
      return 'count(*)'
    case 'sum':
      return measure.hundredths ? `sum(${measure.of}) / 100` : `sum(${measure.of})`
    case 'average':
      return `average(${measure.of})`
    case 'rate':
      return `100 * count(${measure.is}) / count(*)`
    case 'percentile':
      return `percentile ${measure.p * 100} (${measure.of})`
  }
}
