import { parseDuration } from '../../../workflows/language/duration.ts'
import { meantBy } from '../../../workflows/language/problems.ts'
import { addTime, isWritable, parseTime } from '../../../workflows/language/time.ts'
import { type AnalyticsQuery, INTERVALS, type Interval } from '../../../workflows/shared/analytics.ts'
import { ANALYTICS } from '../../../workflows/shared/limits.ts'
import { isTimezone } from '../../../workflows/shared/timezone.ts'
import { UUID } from '../../../workflows/shared/uuid.ts'
import { invalid } from '../errors.ts'
import { bucketStarts } from './buckets.ts'
import type { Dimension, Metric } from './metric.ts'
import { findMetric, METRIC_NAMES } from './metrics/index.ts'

/** A query with its names resolved and its period computed. */
export interface ResolvedQuery {
  metric: Metric
  groupBy: string[]
  filter: [column: string, dimension: Dimension, values: (string | null)[]][]
  interval: Interval | null
  timezone: string
  /** Milliseconds; null: no lower bound. */
  from: number | null
  to: number
  /** The starts of the buckets; undefined without an interval. */
  buckets: number[] | undefined
  limit: number
}

export interface QueryContext {
  now: Date
  /** The organization's time zone. */
  timezone: string
  /** The values of the dimensions that each organization defines, by name; absent: not known, and not checked. */
  values?: Record<string, readonly string[]>
}

export interface QueryProblem {
  path: string[]
  message: string
  type: 'unknown_metric' | 'unknown_dimension' | 'invalid_value'
  hint?: string
}

type Period = Pick<AnalyticsQuery, 'from' | 'to' | 'last' | 'time_zone'>

const DEFAULT_DAYS = 30

/** Resolves a query. Throws `validation_error` with all problems. */
export function resolveQuery(query: AnalyticsQuery, context: QueryContext, part = 'body'): ResolvedQuery {
  const { resolved, problems } = read(query, context)
  if (resolved && problems.length === 0) return resolved
  throw invalid(
    problems.map(({ path, message, type, hint }) => ({
      loc: [part, ...path],
      msg: message,
      type,
      ...(hint && { hint }),
    })),
  )
}

/**
 * The problems of a query; empty if it is valid. Members of a wrong type are ignored, because the schema reports them.
 * `isUnknown` identifies values that are not known yet, such as placeholders.
 */
export function queryProblems(
  query: Record<string, unknown>,
  context: QueryContext,
  isUnknown: (value: unknown) => boolean = () => false,
): QueryProblem[] {
  const text = (value: unknown) => (typeof value === 'string' && !isUnknown(value) ? value : undefined)
  const { group_by, filter, limit } = query
  const interval = text(query.interval)
  const zone = text(query.time_zone)
  return read(
    {
      metric: text(query.metric),
      group_by: Array.isArray(group_by) ? group_by.map((name) => text(name)) : [],
      filter: Object.fromEntries(
        Object.entries(typeof filter === 'object' && filter !== null ? filter : {}).map(([name, value]) => [
          name,
          [value].flat().filter((one) => one === null || text(one) !== undefined),
        ]),
      ),
      interval: INTERVALS.find((one) => one === interval),
      time_zone: zone !== undefined && isTimezone(zone) ? zone : undefined,
      from: text(query.from),
      to: text(query.to),
      last: text(query.last),
      limit: typeof limit === 'number' ? limit : undefined,
    },
    context,
  ).problems
}

/** A query with undefined for unknown values. */
type Given = { [Name in keyof Omit<AnalyticsQuery, 'group_by'>]?: AnalyticsQuery[Name] | undefined } & {
  group_by: (string | undefined)[]
  filter: AnalyticsQuery['filter']
}

function read(query: Given, context: QueryContext): { resolved?: ResolvedQuery; problems: QueryProblem[] } {
  const problems: QueryProblem[] = []
  const metric = query.metric === undefined ? undefined : findMetric(query.metric)
  if (query.metric !== undefined && !metric) problems.push(unknownMetric(query.metric))
  const dimensions = metric?.source.dimensions
  const dimensionAt = (name: string, path: string[]): Dimension | undefined => {
    if (!dimensions) return undefined
    if (Object.hasOwn(dimensions, name)) return dimensions[name]
    problems.push({
      path,
      type: 'unknown_dimension',
      message: `${metric.name} has no dimension ${name.slice(0, 100)}`,
      hint: choice(name, Object.keys(dimensions)),
    })
    return undefined
  }
  const groupBy = query.group_by.flatMap((name, index) => {
    if (name === undefined) return []
    dimensionAt(name, ['group_by', String(index)])
    if (query.group_by.indexOf(name) < index)
      problems.push({
        path: ['group_by', String(index)],
        type: 'invalid_value',
        message: `${name} is a duplicate`,
      })
    return [name]
  })
  const filter = Object.entries(query.filter).flatMap(([name, value]): ResolvedQuery['filter'] => {
    const dimension = dimensionAt(name, ['filter', name])
    const values = [value].flat()
    if (!dimension) return []
    const known = dimension.ofOrganization ? context.values?.[name] : dimension.values
    for (const one of values) problems.push(...valueProblems(name, dimension, known, one))
    return [[name, dimension, values]]
  })
  const timezone = query.time_zone ?? context.timezone
  const present = metric?.present === true && query.interval === undefined
  const period = periodOf(query, { ...context, timezone }, present, problems)
  if (!period) return { problems }
  const { from, to } = period
  const interval = query.interval ?? null
  const buckets =
    interval === null || from === null
      ? undefined
      : bucketStarts(from, to, interval, timezone, ANALYTICS.buckets)
  if (interval !== null && !buckets) {
    problems.push({
      path: ['interval'],
      type: 'invalid_value',
      message: `the period has more than ${ANALYTICS.buckets.toLocaleString('en')} ${interval}s`,
      hint: 'use a longer interval, or a shorter period',
    })
    return { problems }
  }
  const groups = Math.floor(ANALYTICS.rows / (buckets?.length ?? 1)) - 1
  const limit = query.limit ?? Math.min(ANALYTICS.defaultGroups, groups)
  if (groupBy.length > 0 && limit > groups)
    problems.push({
      path: ['limit'],
      type: 'invalid_value',
      message: `${buckets?.length} ${interval}s times ${limit} groups exceed ${ANALYTICS.rows.toLocaleString('en')} rows`,
      hint: `use at most ${groups} groups, a longer interval, or a shorter period`,
    })
  if (!metric) return { problems }
  return { problems, resolved: { metric, groupBy, filter, interval, timezone, from, to, buckets, limit } }
}

function unknownMetric(name: string): QueryProblem {
  const meant = meantBy(name, METRIC_NAMES) ?? METRIC_NAMES.find((known) => known.split('.')[1] === name)
  const [table] = name.split('.')
  const near = METRIC_NAMES.filter((known) => known.split('.')[0] === table)
  return {
    path: ['metric'],
    type: 'unknown_metric',
    message: `there is no metric ${name.slice(0, 100)}`,
    hint: meant ? `did you mean ${meant}?` : `one of ${(near.length > 0 ? near : METRIC_NAMES).join(', ')}`,
  }
}

function valueProblems(
  name: string,
  { type }: Dimension,
  values: readonly string[] | undefined,
  value: string | null,
): QueryProblem[] {
  if (value === null) return []
  const problem = (message: string, hint?: string): QueryProblem[] => [
    { path: ['filter', name], type: 'invalid_value', message: `${name} ${message}`, ...(hint && { hint }) },
  ]
  if (type === 'id' && !UUID.test(value)) return problem('must be an id, a UUID')
  if (values && !values.includes(value))
    return problem(`cannot be ${value.slice(0, 100)}`, choice(value, values))
  return []
}

function choice(name: string, allowed: readonly string[]): string {
  const meant = meantBy(name, allowed)
  return meant ? `did you mean ${meant}?` : `one of ${allowed.join(', ')}`
}

/** The period in milliseconds; undefined if it is invalid. If `to` is a date, it is included. */
function periodOf(
  { from, to, last }: Period,
  { now, timezone }: QueryContext,
  present: boolean,
  problems: QueryProblem[],
): { from: number | null; to: number } | undefined {
  const before = problems.length
  const problem = (member: string, message: string) => {
    problems.push({ path: [member], type: 'invalid_value', message })
    return undefined
  }
  const moment = (member: 'from' | 'to', text: string | undefined): Date | undefined => {
    const parsed = text === undefined ? undefined : parseTime(text, timezone)
    const end = parsed && member === 'to' && isDate(text!) ? addTime(parsed, { days: 1 }, timezone) : parsed
    if (end && isWritable(end)) return end
    return text === undefined
      ? undefined
      : problem(member, 'must be a date or a time, such as 2026-01-31 or 2026-01-31T09:00:00Z')
  }
  const start = moment('from', from)
  const end = moment('to', to) ?? now
  const length = last === undefined ? undefined : parseDuration(last)
  if (last !== undefined && !length) problem('last', 'must be a duration, such as 24h or 7d')
  if (last !== undefined && from !== undefined) problem('last', 'is instead of from: give one of the two')
  if (start && start >= end) problem('from', 'must be before the end of the period')
  if (problems.length > before) return undefined
  if (start) return { from: start.getTime(), to: end.getTime() }
  if (length) return { from: Math.max(end.getTime() - length, EARLIEST), to: end.getTime() }
  const month = addTime(end, { days: -DEFAULT_DAYS }, timezone) ?? end
  return { from: present ? null : month.getTime(), to: end.getTime() }
}

const EARLIEST = Date.parse('0001-01-02T00:00:00Z')

const isDate = (text: string) => text.trim().length === 10
