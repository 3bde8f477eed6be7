import { type AnalyticsQuery, analyticsQuery, type Interval } from '../../../workflows/shared/analytics.ts'
import { kindNames } from '../../../workflows/shared/record-kinds.ts'
import type { Subject } from './metric.ts'
import { findMetric } from './metrics/index.ts'

/** A chart of a dashboard: a metric, by time or for the whole period. */
export interface Chart {
  name: string
  title: string
  metric: string
  group_by?: string[]
  /** One value per interval of the dashboard; else one value per group. */
  over_time?: true
}

export interface Dashboard {
  name: Subject
  title: string
  description: string
  charts: Chart[]
}

const chart = (name: string, title: string, metric: string, more: Partial<Chart> = {}): Chart => ({
  name,
  title,
  metric,
  ...more,
})
const overTime = { over_time: true } as const
const by = (...group_by: string[]) => ({ group_by })

/** The ready-made dashboards, one for each subject of the catalogue. */
export const DASHBOARDS: Dashboard[] = [
  {
    name: 'pipeline',
    title: 'Pipeline',
    description: 'The open deals by stage, and the deals won and lost in the period.',
    charts: [
      chart('open', 'Open deals by stage', 'deals.open', by('stage')),
      chart('open_value', 'Value of open deals by stage', 'deals.open_value', by('stage')),
      chart('weighted_value', 'Weighted value of open deals by stage', 'deals.weighted_value', by('stage')),
      chart('won', 'Deals won', 'deals.won', overTime),
      chart('won_value', 'Value won', 'deals.won_value', overTime),
      chart('lost', 'Deals lost', 'deals.lost', overTime),
      chart('won_by_owner', 'Value won by owner', 'deals.won_value', by('owner_id')),
      chart('win_rate', 'Win rate', 'deals.win_rate'),
      chart('days_to_close', 'Days to close', 'deals.days_to_close'),
    ],
  },
  {
    name: 'records',
    title: 'Records',
    description: 'The records that were created in the period, by kind, and contacts and deals by owner.',
    charts: [
      ...kindNames.map((kind) => chart(kind, `New ${kind}`, `${kind}.created`, overTime)),
      chart('contacts_by_owner', 'New contacts by owner', 'contacts.created', by('owner_id')),
      chart('contacts_by_source', 'New contacts by source', 'contacts.created', by('lead_source')),
      chart('deals_by_owner', 'New deals by owner', 'deals.created', by('owner_id')),
    ],
  },
  {
    name: 'activities',
    title: 'Activities and tasks',
    description: 'Activities by type, and the completion of tasks.',
    charts: [
      chart('activities', 'Activities by type', 'activities.count', { ...overTime, ...by('type') }),
      chart('activities_by_owner', 'Activities by owner', 'activities.count', by('owner_id')),
      chart('duration', 'Time of activities by type, in seconds', 'activities.duration', by('type')),
      chart('completed', 'Tasks completed', 'tasks.completed', overTime),
      chart('open', 'Open tasks by assignee', 'tasks.open', by('assignee_id')),
      chart('overdue', 'Overdue tasks by assignee', 'tasks.overdue', by('assignee_id')),
      chart('completion_rate', 'Completion of due tasks', 'tasks.completion_rate'),
      chart('on_time_rate', 'Tasks done by their due time', 'tasks.on_time_rate'),
    ],
  },
  {
    name: 'workflows',
    title: 'Workflows',
    description: 'Runs by status, their success rate and duration.',
    charts: [
      chart('runs', 'Runs by status', 'runs.count', { ...overTime, ...by('status') }),
      chart('runs_by_workflow', 'Runs by workflow', 'runs.count', by('workflow_id')),
      chart('success_rate', 'Success rate', 'runs.success_rate', overTime),
      chart('success_by_workflow', 'Success rate by workflow', 'runs.success_rate', by('workflow_id')),
      chart('duration_average', 'Average duration by workflow', 'runs.duration_average', by('workflow_id')),
      chart('duration_p50', 'Median duration', 'runs.duration_p50'),
      chart('duration_p95', '95th percentile of the duration', 'runs.duration_p95'),
    ],
  },
  {
    name: 'webhooks',
    title: 'Webhooks',
    description: 'Requests to incoming webhooks and deliveries to outgoing ones, by outcome.',
    charts: [
      chart('requests', 'Requests by status', 'requests.count', { ...overTime, ...by('status') }),
      chart('requests_by_webhook', 'Requests by webhook', 'requests.count', by('webhook_id')),
      chart('requests_by_error', 'Refused requests by error', 'requests.count', by('error')),
      chart('requests_success', 'Success rate of requests', 'requests.success_rate'),
      chart('deliveries', 'Deliveries by status', 'deliveries.count', { ...overTime, ...by('status') }),
      chart('deliveries_success', 'Success rate by webhook', 'deliveries.success_rate', by('webhook_id')),
      chart('attempts', 'Attempts', 'deliveries.attempts', overTime),
      chart('deliveries_p95', '95th percentile of the time to deliver', 'deliveries.duration_p95'),
    ],
  },
]

/** The period of a dashboard; its members are those of a query. */
export type DashboardPeriod = Pick<AnalyticsQuery, 'from' | 'to' | 'last' | 'time_zone'> & {
  interval?: Interval | undefined
}

/** The queries of the charts. Metrics of the present state ignore the period. */
export const dashboardQueries = ({ charts }: Dashboard, period: DashboardPeriod): AnalyticsQuery[] => {
  const { interval = 'day', ...times } = period
  return charts.map(({ metric, group_by, over_time }) =>
    analyticsQuery.parse({
      metric,
      group_by,
      ...(over_time && { interval }),
      ...(findMetric(metric)!.present ? { time_zone: times.time_zone } : times),
    }),
  )
}
