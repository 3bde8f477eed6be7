import { type Metric, secondsBetween } from '../metric.ts'
import { RUNS } from '../sources.ts'

const runs = { subject: 'workflows', source: RUNS, time: 'id' } as const

/** From the start to the end of a run. */
const DURATION = secondsBetween('started_at', 'ended_at')
const ENDED = "t.status in ('completed', 'failed', 'terminated', 'lost')"
const took = (description: string, name: string, measure: Metric['measure']): Metric => ({
  ...runs,
  name: `runs.duration_${name}`,
  unit: 'seconds',
  description: `${description} of completed runs, waits included, by the time at which they were created.`,
  where: "t.status = 'completed'",
  measure,
})

/** Runs of workflows, by creation time. */
export const WORKFLOW_METRICS: Metric[] = [
  {
    ...runs,
    name: 'runs.count',
    unit: 'count',
    description: 'The runs of workflows, by the time at which they were created.',
    measure: { type: 'count' },
  },
  {
    ...runs,
    name: 'runs.success_rate',
    unit: 'percent',
    description:
      'The completed runs, in percent of those that have completed, failed, or were terminated or lost.',
    where: ENDED,
    measure: { type: 'rate', is: "t.status = 'completed'" },
  },
  took('The average duration', 'average', { type: 'average', of: DURATION }),
  took('The median duration, within 2 %,', 'p50', { type: 'percentile', of: DURATION, p: 0.5 }),
  took('The 95th percentile of the duration, within 2 %,', 'p95', {
    type: 'percentile',
    of: DURATION,
    p: 0.95,
  }),
]
