import { offsetsOf } from '../../../workflows/language/time.ts'
import type { Interval } from '../../../workflows/shared/analytics.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/**
 * The starts of the hours, days, weeks (from Monday) or months that a period overlaps, in a time zone and as
 * milliseconds; undefined if there are more than `most`. A day can have 23 or 25 hours, and starts at the first moment
 * of its date: the clock may skip midnight, or show it twice.
 */
export function bucketStarts(
  from: number,
  to: number,
  interval: Interval,
  timezone: string,
  most: number,
): number[] | undefined {
  const offsetAt = offsetsOf(timezone)
  if (Math.ceil((to - from) / LONGEST[interval]) > most) return undefined
  const next = interval === 'hour' ? hours(from, offsetAt) : dates(from, interval, offsetAt)
  const starts: number[] = []
  for (let start = next(); start < to; start = next()) {
    starts.push(start)
    if (starts.length > most) return undefined
  }
  return starts
}

/** Upper bounds of the lengths. */
const LONGEST: Record<Interval, number> = { hour: 2 * HOUR, day: 2 * DAY, week: 8 * DAY, month: 32 * DAY }

type OffsetAt = (moment: number) => number

/** Hours of the local clock. A clock change by less than an hour starts a new one. */
function hours(from: number, offsetAt: OffsetAt): () => number {
  const within = (moment: number) => modulo(moment + offsetAt(moment), HOUR)
  let next = from - within(from)
  // The offset may have changed since the hour started.
  if (within(next) !== 0) next = from - Math.min(within(from), HOUR)
  return () => {
    const start = next
    next = start + HOUR - within(start)
    return start
  }
}

/** Days, weeks and months of the local calendar. */
function dates(from: number, interval: Exclude<Interval, 'hour'>, offsetAt: OffsetAt): () => number {
  const date = new Date(from + offsetAt(from))
  date.setUTCHours(0, 0, 0, 0)
  if (interval === 'week') date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7))
  if (interval === 'month') date.setUTCDate(1)
  return () => {
    const start = firstMoment(date.getTime(), offsetAt)
    if (interval === 'month') date.setUTCMonth(date.getUTCMonth() + 1)
    else date.setUTCDate(date.getUTCDate() + (interval === 'week' ? 7 : 1))
    return start
  }
}

/**
 * The first moment when the local clock shows this midnight or, if it skips midnight, a later time. It uses the offset
 * before or after a clock change. The offset before gives the earlier moment if the clock was set back, and the moment
 * of the change if it was set forward.
 */
function firstMoment(midnight: number, offsetAt: OffsetAt): number {
  const [before, after] = [offsetAt(midnight - DAY), offsetAt(midnight + DAY)]
  const fits = [before, after]
    .map((offset) => midnight - offset)
    .filter((moment) => moment + offsetAt(moment) === midnight)
  return fits.length > 0 ? Math.min(...fits) : midnight - before
}

const modulo = (value: number, by: number) => ((value % by) + by) % by
