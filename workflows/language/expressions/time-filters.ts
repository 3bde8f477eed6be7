import type { FilterImplOptions } from 'liquidjs'
import { addTime, isDay, localParts, parseTime } from '../time.ts'
import { type Applied, timezoneIn } from './scope-context.ts'

/** The units of `add_time`, and of `time_until` those of fixed length. */
export const TIME_UNITS = ['minutes', 'hours', 'days', 'weeks', 'months', 'years'] as const

const MINUTES: Record<string, number> = { minutes: 1, hours: 60, days: 1_440, weeks: 10_080 }

/** The units of which a day is compared with the local day of a moment. */
const CALENDAR = ['days', 'weeks']

/** The filters that compute with times, in the time zone of the organization; a node computes in any. */
export const timeFilters: Record<string, FilterImplOptions> = {
  /**
   * `inputs.day | add_time: 3, "days"`. A date stays a date, unless hours or minutes are added. Days and longer units
   * keep the local time.
   */
  add_time(this: Applied, value: unknown, amount: unknown, unit: unknown) {
    if (isAbsent(value)) return null
    const name = unitOf(unit, TIME_UNITS)
    const count = Number(amount)
    if (amount === null || amount === '' || !Number.isInteger(count))
      throw new Error('add_time takes a whole number and a unit: add_time: 3, "days"')
    const staysDay = isDay(String(value)) && name !== 'hours' && name !== 'minutes'
    const timezone = staysDay ? 'UTC' : timezoneIn(this.context)
    const after = addTime(momentOf(value, timezone), { [name]: count }, timezone)
    if (!after) throw new Error('the result is not in the years 1 to 9999')
    return staysDay ? after.toISOString().slice(0, 10) : after.toISOString()
  },
  /**
   * `run.started_at | time_until: inputs.day, "days"`: whole units, negative if the second time is before. If one of the
   * times is a day, days and weeks are those of the calendar.
   */
  time_until(this: Applied, value: unknown, end: unknown, unit: unknown) {
    if (isAbsent(value) || isAbsent(end)) return null
    const name = unitOf(unit, Object.keys(MINUTES))
    const timezone = timezoneIn(this.context)
    const [from, to] = [momentOf(value, timezone), momentOf(end, timezone)]
    const isCalendar = CALENDAR.includes(name) && [value, end].some((one) => isDay(String(one)))
    const elapsed = isCalendar ? dayOf(to, timezone) - dayOf(from, timezone) : to.getTime() - from.getTime()
    return Math.trunc(elapsed / 60_000 / MINUTES[name]!) || 0
  },
}

/** The local day of a moment, in milliseconds without changes of clocks. */
const dayOf = (moment: Date, timezone: string): number =>
  Date.parse(`${localParts(moment, timezone).date}T00:00:00Z`)

/** Without a time there is nothing to compute, as with numbers. */
const isAbsent = (value: unknown) => value === null || value === undefined || value === ''

/** The unit in the plural. Throws an error for the author. */
function unitOf(unit: unknown, units: readonly string[]): string {
  const plural = units.find((name) => name === unit || name === `${String(unit)}s`)
  if (plural === undefined) throw new Error(`the unit must be one of ${units.join(', ')}`)
  return plural
}

function momentOf(value: unknown, timezone: string): Date {
  // As in the filter `date`.
  const isNow = value === 'now'
  const moment = isNow ? new Date() : typeof value === 'string' ? parseTime(value, timezone) : undefined
  if (!moment)
    throw new Error(`${JSON.stringify(value)?.slice(0, 50)} is no time such as 2026-01-31T09:00:00Z`)
  return moment
}
