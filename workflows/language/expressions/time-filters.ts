import type { FilterImplOptions } from 'liquidjs'
import { addTime, parseTime } from '../time.ts'

/** The units of `add_time`, and of `time_until` those of fixed length. */
export const TIME_UNITS = ['minutes', 'hours', 'days', 'weeks', 'months', 'years'] as const

const MINUTES: Record<string, number> = { minutes: 1, hours: 60, days: 1_440, weeks: 10_080 }

/** The filters that compute with times, in UTC; a node computes in a time zone. */
export const timeFilters: Record<string, FilterImplOptions> = {
  /** `inputs.day | add_time: 3, "days"`. A date stays a date, unless hours or minutes are added. */
  add_time: (value: unknown, amount: unknown, unit: unknown) => {
    if (isAbsent(value)) return null
    const name = unitOf(unit, TIME_UNITS)
    const count = Number(amount)
    if (amount === null || amount === '' || !Number.isInteger(count))
      throw new Error('add_time takes a whole number and a unit: add_time: 3, "days"')
    const after = addTime(momentOf(value), { [name]: count }, 'UTC')
    if (!after) throw new Error('the result is not in the years 1 to 9999')
    const isDay = String(value).trim().length === 10 && name !== 'hours' && name !== 'minutes'
    return isDay ? after.toISOString().slice(0, 10) : after.toISOString()
  },
  /** `run.started_at | time_until: inputs.day, "days"`: whole units, negative if the second time is before. */
  time_until: (value: unknown, end: unknown, unit: unknown) => {
    if (isAbsent(value) || isAbsent(end)) return null
    const name = unitOf(unit, Object.keys(MINUTES))
    const minutes = (momentOf(end).getTime() - momentOf(value).getTime()) / 60_000
    return Math.trunc(minutes / MINUTES[name]!) || 0
  },
}

/** Without a time there is nothing to compute, as with numbers. */
const isAbsent = (value: unknown) => value === null || value === undefined || value === ''

/** The unit in the plural. Throws an error for the author. */
function unitOf(unit: unknown, units: readonly string[]): string {
  const plural = units.find((name) => name === unit || name === `${String(unit)}s`)
  if (plural === undefined) throw new Error(`the unit must be one of ${units.join(', ')}`)
  return plural
}

function momentOf(value: unknown): Date {
  // As in the filter `date`.
  const isNow = value === 'now'
  const moment = isNow ? new Date() : typeof value === 'string' ? parseTime(value) : undefined
  if (!moment)
    throw new Error(`${JSON.stringify(value)?.slice(0, 50)} is no time such as 2026-01-31T09:00:00Z`)
  return moment
}
