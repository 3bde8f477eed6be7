import { z } from 'zod'
import { ANALYTICS } from './limits.ts'
import { isTimezone, NO_TIMEZONE } from './timezone.ts'

/** The shape of an analytics query, on the wire and in nodes. `db/analytics/` has the metrics. */

export const INTERVALS = ['hour', 'day', 'week', 'month'] as const
export type Interval = (typeof INTERVALS)[number]

const value = z.string().max(255).nullable()

const moment = (description: string) => z.string().max(40).optional().describe(description)

/** The period of a query. */
export const analyticsPeriod = {
  from: moment(
    'The start: a time such as 2026-01-31T09:00:00Z, or a date, which is the start of the day in `time_zone`. Default: 30 days before `to`; metrics of the present state have no start then.',
  ),
  to: moment('The end, exclusive: a time, or a date, which is the end of that day. Default: now.'),
  last: z
    .string()
    .max(20)
    .optional()
    .describe('The length of the period up to `to`, such as 24h or 7d, instead of `from`.'),
  time_zone: z
    .string()
    .max(64)
    .refine(isTimezone, NO_TIMEZONE)
    .optional()
    .describe('An IANA name: where days, weeks and months begin. Default: that of the organization.'),
}

export const analyticsQuery = z.strictObject({
  metric: z.string().min(1).max(100).describe('The name of a metric, such as `deals.won_value`.'),
  group_by: z
    .array(z.string().max(100))
    .max(ANALYTICS.dimensions)
    .default([])
    .describe('The dimensions of the metric to group by, such as `[stage]`.'),
  interval: z
    .enum(INTERVALS)
    .optional()
    .describe('Makes a row for each hour, day, week (from Monday) or month. Default: one for the period.'),
  filter: z
    .record(z.string().max(100), z.union([value, z.array(value).min(1).max(ANALYTICS.values)]))
    .default({})
    .describe(
      'Only rows with these values, by dimension: one, or a list of which one must fit: `{stage: [won, lost]}`. Null: without a value.',
    ),
  ...analyticsPeriod,
  limit: z
    .int()
    .min(1)
    .max(ANALYTICS.groups)
    .optional()
    .describe(`The groups to show, those with the most rows; the rest is one group. Default: 10.`),
})

export type AnalyticsQuery = z.output<typeof analyticsQuery>

export const analyticsRow = z.strictObject({
  bucket: z
    .string()
    .nullable()
    .describe('The start of the hour, day, week or month in `time_zone`; null without `interval`.'),
  group: z
    .record(z.string(), z.string().nullable())
    .describe('The values of the dimensions of `group_by`; null: without a value, or of the other groups.'),
  other: z.boolean().describe('Whether it is the sum of the groups that are not shown.'),
  currency: z.string().optional().describe('For money: amounts of different currencies are never added.'),
  value: z
    .union([z.number(), z.string()])
    .nullable()
    .describe('A number; of money a decimal text. Null: nothing to make an average or a rate of.'),
})

export type AnalyticsRow = z.output<typeof analyticsRow>

export const analyticsResult = z.strictObject({
  metric: z.string(),
  unit: z.string(),
  from: z.string().nullable().describe('Null: since the beginning.'),
  to: z.string(),
  time_zone: z.string(),
  interval: z.enum(INTERVALS).nullable(),
  group_by: z.array(z.string()),
  kept_since: z
    .string()
    .nullable()
    .describe(
      'Rows that ended before are deleted by retention, and are not counted. Null: nothing is deleted.',
    ),
  rows: z.array(analyticsRow).describe('By bucket, and within it by group.'),
  total: z
    .union([z.number(), z.string()])
    .nullable()
    .describe('The value of the whole period and all groups. Null: none, or several currencies.'),
  totals: z
    .array(z.strictObject({ currency: z.string().optional(), value: analyticsRow.shape.value }))
    .describe('The same for each currency; one entry if the metric is not money.'),
  converted: z
    .strictObject({ currency: z.string(), value: z.string().nullable() })
    .nullable()
    .optional()
    .describe(
      'For money: the total in the currency of the organization, by its exchange rates. Null: a currency has none.',
    ),
})

export type AnalyticsResult = z.output<typeof analyticsResult>

/** A metric, as the catalogue shows it. */
export interface MetricInfo {
  name: string
  subject: string
  unit: string
  description: string
  /** How it is computed, such as `count(stage = 'won') / count(*) of deals where …`. */
  formula: string
  time: string
  dimensions: { name: string; description: string; values: string[] | null }[]
}
