import { findMetric } from '../../../db/model/analytics/metrics/index.ts'
import type { AnalyticsQuery } from '../../../workflows/shared/analytics.ts'
import { isRecordKind } from '../records/record.ts'

type Parameters = [name: string, value: string][]

const OPEN: Parameters = [['closed_at[is_null]', 'true']]
const WON: Parameters = [['outcome', 'won']]
const LOST: Parameters = [['outcome', 'lost']]
const NOT_ENDED: Parameters = [['status[nin]', 'done,cancelled']]
const DUE: Parameters = [['status[ne]', 'cancelled']]

/** The rows that a metric counts, where they are not all of its table: as filters of the list of these records. */
const CONDITIONS: Record<string, Parameters> = {
  'deals.open': OPEN,
  'deals.open_value': OPEN,
  'deals.weighted_value': OPEN,
  'deals.days_in_stage': OPEN,
  'deals.won': WON,
  'deals.won_value': WON,
  'deals.won_average': WON,
  'deals.days_to_close': WON,
  'deals.lost': LOST,
  'deals.lost_value': LOST,
  'deals.win_rate': [['outcome[in]', 'won,lost']],
  'tasks.open': NOT_ENDED,
  'tasks.overdue': NOT_ENDED,
  'tasks.completed': [['status', 'done']],
  'tasks.days_to_complete': [['status', 'done']],
  'tasks.completion_rate': DUE,
  'tasks.on_time_rate': DUE,
}

/** What a number of a chart was counted of. */
export interface Counted {
  metric: string
  group: Record<string, string | null>
  filter: AnalyticsQuery['filter']
  currency: string | undefined
  /** ISO 8601; null: since the beginning. */
  from: string | null
  /** Exclusive. */
  to: string
}

/** The address of the list of what a number was counted of; undefined if no list can show it. */
export function drillDown(counted: Counted): string | undefined {
  const metric = findMetric(counted.metric)
  if (!metric) return undefined
  const { table } = metric.source
  if (isRecordKind(table)) return recordList(counted, table, metric.time, metric.currency !== undefined)
  const values = { ...singleValues(counted.filter), ...counted.group }
  if (Object.values(values).some((value) => value === null)) return undefined
  const { webhook_id, ...others } = values as Record<string, string>
  const query = new URLSearchParams({ ...others, ...within(counted) })
  if (table === 'runs') return `/runs?${query}`
  if (!webhook_id) return undefined
  const direction = table === 'deliveries' ? 'outgoing' : 'incoming'
  return `/settings/webhooks/${direction}/${webhook_id}?${query}`
}

function recordList(
  { metric, group, filter, currency, from, to }: Counted,
  kind: string,
  time: string,
  isMoney: boolean,
) {
  const query = new URLSearchParams(CONDITIONS[metric] ?? [])
  for (const [name, value] of Object.entries({ ...filter, ...group })) {
    if (Array.isArray(value)) query.append(`${name}[in]`, value.join(','))
    else if (value === null) query.append(`${name}[is_null]`, 'true')
    else query.append(name, value)
  }
  if (isMoney && currency && !query.has('currency')) query.append('currency', currency)
  if (from) query.append(`${time}[gte]`, from)
  // A list of the present state, without a period, has no end either.
  if (from || time === 'due_at') query.append(`${time}[lt]`, to)
  return `/records/${kind}?${query}`
}

/** Filters with one value: the lists of runs and logs take no others. */
const singleValues = (filter: AnalyticsQuery['filter']) =>
  Object.fromEntries(
    Object.entries(filter).map(([name, value]) => [name, Array.isArray(value) ? null : value]),
  ) as Record<string, string | null>

/** The period of lists whose end is inclusive. */
const within = ({ from, to }: Counted) => ({
  ...(from && { from }),
  to: new Date(Date.parse(to) - 1).toISOString(),
})
