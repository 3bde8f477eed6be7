import { parseDuration } from '../../../workflows/language/duration.ts'
import type { Interval } from '../../../workflows/shared/analytics.ts'
import { ChoiceFilter, DateFilter } from '../components/filters.tsx'

const LENGTHS = [
  { id: '7d', name: '7 days' },
  { id: '30d', name: '30 days' },
  { id: '90d', name: '90 days' },
  { id: '365d', name: '12 months' },
]

/** The fields of a period: its length up to now, or its first and last day. */
export const PeriodFilters = ({ none = 'default' }: { none?: string }) => (
  <>
    <ChoiceFilter name="last" choices={LENGTHS} label="The last" none={none} />
    <DateFilter name="from" label="or from" />
    <DateFilter name="to" label="to (inclusive)" />
  </>
)

export interface Period {
  last?: string
  from?: string
  to?: string
}

/** The period in the address. A first day counts before a length. */
export function periodOf(query: URLSearchParams): Period {
  const [last, from, to] = ['last', 'from', 'to'].map((name) => query.get(name)?.trim())
  return { ...(from ? { from } : last && { last }), ...(to && { to }) }
}

/** A chart has some 30 bars or fewer, whatever its period. */
const INTERVALS: [days: number, interval: Interval][] = [
  [2, 'hour'],
  [45, 'day'],
  [190, 'week'],
]

const DAY = 86_400_000

export function intervalFor({ last = '30d', from, to }: Period, now = Date.now()): Interval {
  const end = to ? Date.parse(to) + DAY : now
  const length = from ? end - Date.parse(from) : (parseDuration(last) ?? 30 * DAY)
  return INTERVALS.find(([days]) => length <= days * DAY)?.[1] ?? (Number.isNaN(length) ? 'day' : 'month')
}

/** The period as parameters of an address. */
export const periodQuery = (period: Period): [string, string][] =>
  Object.entries(period).filter(([, value]) => value)
