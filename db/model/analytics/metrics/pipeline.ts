import { type Metric, secondsBetween } from '../metric.ts'
import { RECORDS } from '../sources.ts'

const deals = { subject: 'pipeline', source: RECORDS.deals } as const
const created = { ...deals, time: 'created_at' } as const
const present = { ...created, present: true } as const
const closed = { ...deals, time: 'closed_at' } as const
const money = { unit: 'money', currency: 'currency' } as const

/** `closed_at` is set exactly while a deal is won or lost. */
const OPEN = 't.closed_at is null'
const WON = "t.outcome = 'won' and t.closed_at is not null"
const LOST = "t.outcome = 'lost' and t.closed_at is not null"
/** An imported deal may have a close date without a time, or only that of its end. */
const CREATED_BEFORE = "t.closed_at > t.created_at - interval '1 day'"
const AMOUNT = { type: 'sum', of: 't.amount' } as const

/** Deals: the state of the pipeline, and how deals end. */
export const PIPELINE_METRICS: Metric[] = [
  {
    ...present,
    name: 'deals.count',
    unit: 'count',
    description: 'The deals, by default all of them; the period refers to their creation.',
    measure: { type: 'count' },
  },
  { ...present, ...money, name: 'deals.value', description: 'The amounts of deals.', measure: AMOUNT },
  {
    ...present,
    ...money,
    source: RECORDS.line_items,
    name: 'line_items.value',
    description: 'The amounts of line items, of deals in any stage.',
    measure: AMOUNT,
  },
  {
    ...present,
    name: 'deals.open',
    unit: 'count',
    description: 'The deals that are neither won nor lost.',
    where: OPEN,
    measure: { type: 'count' },
  },
  {
    ...present,
    ...money,
    name: 'deals.open_value',
    description: 'The amounts of deals that are neither won nor lost.',
    where: OPEN,
    measure: AMOUNT,
  },
  {
    ...present,
    ...money,
    name: 'deals.weighted_value',
    description: 'The amounts of deals that are neither won nor lost, each multiplied by its probability.',
    where: OPEN,
    measure: { type: 'sum', of: '(t.amount * t.probability)', hundredths: true },
  },
  {
    ...present,
    name: 'deals.days_in_stage',
    unit: 'days',
    description: 'The average time since which open deals are in their stage.',
    where: OPEN,
    measure: { type: 'average', of: 'extract(epoch from now() - t.stage_changed_at) / 86400' },
  },
  {
    ...closed,
    name: 'deals.won',
    unit: 'count',
    description: 'The won deals, by the time at which they were won.',
    where: WON,
    measure: { type: 'count' },
  },
  {
    ...closed,
    ...money,
    name: 'deals.won_value',
    description: 'The amounts of deals that were won.',
    where: WON,
    measure: AMOUNT,
  },
  {
    ...closed,
    ...money,
    name: 'deals.won_average',
    description: 'The average amount of deals that were won.',
    where: WON,
    measure: { type: 'average', of: 't.amount' },
  },
  {
    ...closed,
    name: 'deals.lost',
    unit: 'count',
    description: 'The lost deals, by the time at which they were lost.',
    where: LOST,
    measure: { type: 'count' },
  },
  {
    ...closed,
    ...money,
    name: 'deals.lost_value',
    description: 'The amounts of deals that were lost.',
    where: LOST,
    measure: AMOUNT,
  },
  {
    ...closed,
    name: 'deals.win_rate',
    unit: 'percent',
    description: 'The deals that were won, in percent of those that were won or lost.',
    where: `(${WON} or ${LOST})`,
    measure: { type: 'rate', is: WON },
  },
  {
    ...closed,
    name: 'deals.days_to_close',
    unit: 'days',
    description:
      'The average time from the creation of a deal until it was won. A deal that was closed a day or more before it was created here does not count.',
    where: `${WON} and ${CREATED_BEFORE}`,
    measure: { type: 'average', of: `greatest(0, ${secondsBetween('created_at', 'closed_at')}) / 86400` },
  },
]
