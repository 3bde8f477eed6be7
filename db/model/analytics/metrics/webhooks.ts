import { type Metric, secondsBetween } from '../metric.ts'
import { DELIVERIES, REQUESTS } from '../sources.ts'

const requests = { subject: 'webhooks', source: REQUESTS, time: 'id' } as const
const deliveries = { subject: 'webhooks', source: DELIVERIES, time: 'id' } as const

/** Requests to incoming webhooks, and deliveries to outgoing ones. */
export const WEBHOOK_METRICS: Metric[] = [
  {
    ...requests,
    name: 'requests.count',
    unit: 'count',
    description: 'The requests to incoming webhooks, also those of blocked addresses.',
    measure: { type: 'sum', of: 't.requests' },
  },
  {
    ...requests,
    name: 'requests.success_rate',
    unit: 'percent',
    description: 'The accepted requests, in percent of those that were not blocked.',
    where: "t.status <> 'Blocked'",
    measure: { type: 'rate', is: "t.status = 'Success'" },
  },
  {
    ...requests,
    name: 'requests.response_time_p95',
    unit: 'milliseconds',
    description: 'The 95th percentile of the response time of accepted requests, within 2 %.',
    where: "t.status = 'Success'",
    measure: { type: 'percentile', of: 't.response_time_ms', p: 0.95 },
  },
  {
    ...deliveries,
    name: 'deliveries.count',
    unit: 'count',
    description: 'The deliveries to outgoing webhooks, without tests.',
    measure: { type: 'count' },
  },
  {
    ...deliveries,
    name: 'deliveries.success_rate',
    unit: 'percent',
    description: 'The deliveries that succeeded, in percent of those that have succeeded or failed.',
    where: "t.status in ('succeeded', 'failed')",
    measure: { type: 'rate', is: "t.status = 'succeeded'" },
  },
  {
    ...deliveries,
    name: 'deliveries.attempts',
    unit: 'count',
    description: 'The attempts of deliveries.',
    measure: { type: 'sum', of: 't.attempts' },
  },
  {
    ...deliveries,
    name: 'deliveries.attempts_average',
    unit: 'count',
    description: 'The average number of attempts of deliveries that have succeeded or failed.',
    where: "t.status in ('succeeded', 'failed')",
    measure: { type: 'average', of: 't.attempts' },
  },
  {
    ...deliveries,
    name: 'deliveries.duration_p95',
    unit: 'seconds',
    description: 'The 95th percentile of the time from a delivery’s start to its success, within 2 %.',
    where: "t.status = 'succeeded'",
    measure: { type: 'percentile', of: secondsBetween('started_at', 'ended_at'), p: 0.95 },
  },
]
