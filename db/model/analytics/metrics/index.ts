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

/** A metric as the API shows it, without its SQL. */
export const describeMetric = ({ name, subject, unit, description, time, source }: Metric): MetricInfo => ({
  name,
  subject,
  unit,
  description,
  time: time === 'id' ? 'created_at' : time,
  dimensions: Object.entries(source.dimensions).map(([dimension, { description, values }]) => ({
    name: dimension,
    description,
    values: values ? [...values] : null,
  })),
})
