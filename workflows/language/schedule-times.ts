import type { ScheduleSpec } from './definition.ts'
import { parseDuration } from './duration.ts'
import { FIELDS, valuesOf } from './schedule.ts'

/**
 * The times of schedules, without jitter. Temporal fires the schedules, so `nextCron` follows the algorithm of its server
 * (`service/worker/scheduler/calendar.go`), also where clocks change; a test compares the two.
 */

export type Clock = Pick<ScheduleSpec, 'cron' | 'every' | 'offset' | 'timezone'>

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
/** As in Temporal: a schedule has no time after it. */
const LAST_YEAR = 2100

/** The next `count` times after `after`. */
export function nextTimes(clock: Clock, after: Date, count: number): Date[] {
  const next = nextOf(clock)
  const times: Date[] = []
  for (let time = next(after.getTime()); time !== undefined && times.length < count; time = next(time))
    times.push(new Date(time))
  return times
}

/** The number of times from `from` to `to`, both inclusive. */
export function countTimes(clock: Clock, from: Date, to: Date): number {
  if (clock.cron === undefined) {
    const { every, offset } = intervalOf(clock)
    return Math.max(
      0,
      Math.floor((to.getTime() - offset) / every) - Math.ceil((from.getTime() - offset) / every) + 1,
    )
  }
  let count = 0
  eachCron(clock.cron, clock.timezone, from.getTime(), to.getTime(), (_, minutes) => {
    count += minutes.length
  })
  return count
}

/** The times from `from` to `to`, both inclusive. The caller has bounded them by `countTimes`. */
export function listTimes(clock: Clock, from: Date, to: Date): Date[] {
  const times: Date[] = []
  if (clock.cron === undefined) {
    const next = nextOf(clock)
    for (let time = next(from.getTime() - 1)!; time <= to.getTime(); time = next(time)!)
      times.push(new Date(time))
  } else
    eachCron(clock.cron, clock.timezone, from.getTime(), to.getTime(), (hour, minutes) => {
      for (const minute of minutes) times.push(new Date(hour + minute * MINUTE))
    })
  return times
}

/** The shortest time between two times, in milliseconds: for cron, among the next 1,000. */
export function shortestGap(clock: Clock): number {
  if (clock.cron === undefined) return intervalOf(clock).every
  const times = nextTimes({ cron: clock.cron, timezone: 'UTC' }, new Date('2026-01-01T00:00:00Z'), 1_000)
  const gaps = times.slice(1).map((time, index) => time.getTime() - times[index]!.getTime())
  return Math.min(...gaps)
}

/** A time as the clocks of the zone show it, in ISO 8601: `2026-10-25T02:30:00+01:00`. */
export function localText(time: Date, timezone: string): string {
  const offset = zoneOf(timezone).offset(time.getTime())
  const local = new Date(time.getTime() + offset).toISOString().slice(0, 19)
  const minutes = Math.abs(offset) / MINUTE
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  return `${local}${offset < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`
}

/** The function that returns the first time after another, in milliseconds since 1970. */
function nextOf(clock: Clock): (after: number) => number | undefined {
  if (clock.cron !== undefined) {
    const [calendar, zone] = [calendarOf(clock.cron), zoneOf(clock.timezone)]
    return (after) => nextCron(calendar, zone, after)
  }
  const { every, offset } = intervalOf(clock)
  return (after) => (Math.floor((after - offset) / every) + 1) * every + offset
}

const intervalOf = ({ every = '', offset = '0s' }: Clock) => ({
  every: parseDuration(every)!,
  offset: parseDuration(offset)!,
})

/** The values that match, by field. */
interface Calendar {
  minutes: Set<number>
  hours: Set<number>
  days: Set<number>
  months: Set<number>
  weekdays: Set<number>
}

function calendarOf(cron: string): Calendar {
  const fields = cron.trim().split(/\s+/)
  const [minutes, hours, days, months, weekdays] = FIELDS.map(
    (field, index) => new Set(valuesOf(fields[index]!, field).sort((a, b) => a - b)),
  ) as [Set<number>, Set<number>, Set<number>, Set<number>, Set<number>]
  if (weekdays.has(7)) weekdays.add(0)
  return { minutes, hours, days, months, weekdays }
}

const daysIn = (year: number, month: number) => new Date(Date.UTC(year, month, 0)).getUTCDate()

/** The first time after `after`, as Temporal's `compiledCalendar.next`; undefined if there is none. */
function nextCron(calendar: Calendar, zone: Zone, after: number): number | undefined {
  const { minutes, hours, days, months, weekdays } = calendar
  const start = zone.local(after)
  let [y, mo, d] = [start.getUTCFullYear(), start.getUTCMonth() + 1, start.getUTCDate()]
  let [h, m] = [start.getUTCHours(), start.getUTCMinutes() + 1]
  // Whether the time is in the second copy of an hour that a change of clocks repeats.
  let repeated = zone.local(after - HOUR).getUTCHours() === h ? HOUR : 0
  search: for (;;) {
    if (m >= 60) {
      const previous = zone.at(y, mo, d, h, 0)
      h++
      m = 0
      // Two hours to the next one: between them is the first copy of a repeated hour.
      if (repeated === 0 && zone.at(y, mo, d, h, 0) - previous > HOUR) {
        h--
        repeated = HOUR
      } else repeated = 0
    }
    if (h >= 24) {
      d++
      h = 0
    }
    if (d > daysIn(y, mo)) {
      mo++
      d = 1
    }
    if (mo > 12) {
      y++
      mo = 1
    }
    if (y > LAST_YEAR) return undefined
    while (!months.has(mo)) {
      mo++
      d = 1
      h = m = repeated = 0
      if (mo > 12) continue search
    }
    while (!days.has(d) || (weekdays.size < 7 && !weekdays.has(zone.weekday(y, mo, d, h, m)))) {
      d++
      h = m = repeated = 0
      if (d > daysIn(y, mo)) continue search
    }
    while (!hours.has(h)) {
      h++
      m = repeated = 0
      if (h >= 24) continue search
    }
    while (!minutes.has(m)) {
      m++
      if (m >= 60) continue search
    }
    const time = zone.at(y, mo, d, h, m)
    // A time that a change of clocks leaves out.
    if (zone.local(time).getUTCHours() !== h) {
      h++
      m = 0
      continue
    }
    return time + repeated
  }
}

/** How far from a change of clocks times are searched one by one. */
const AROUND = 2 * HOUR

/** Takes the times `minutes` after `start`. */
type Visit = (start: number, minutes: readonly number[]) => void

/**
 * Calls `visit` with the times from `from` to `to`, in order. Periods without a change of clocks nearby are computed by
 * whole hours: ten years of minutes would take minutes with `nextCron` alone.
 */
function eachCron(cron: string, timezone: string, from: number, to: number, visit: Visit): void {
  const calendar = calendarOf(cron)
  const zone = zoneOf(timezone)
  // Where clocks change, Temporal's next time depends on the one before.
  let last = from - 1
  const found: Visit = (start, minutes) => {
    last = start + minutes.at(-1)! * MINUTE
    visit(start, minutes)
  }
  const within = (start: number, end: number): void => {
    const offset = zone.offset(start - AROUND)
    if (zone.offset(end + AROUND) === offset) eachInSpan(calendar, start, end, offset, found)
    else if (end - start > HOUR) {
      const middle = Math.ceil((start + end) / 2)
      within(start, middle)
      within(middle, end)
    } else {
      let time = nextCron(calendar, zone, last)
      for (; time !== undefined && time < end; time = nextCron(calendar, zone, time)) found(time, [0])
    }
  }
  for (let start = from; start <= to; start += 7 * DAY) within(start, Math.min(start + 7 * DAY, to + 1))
}

/** The times from `start` to `end`, which is exclusive, while the clocks do not change. */
function eachInSpan(calendar: Calendar, start: number, end: number, offset: number, visit: Visit): void {
  const { hours, days, months, weekdays } = calendar
  const minutes = [...calendar.minutes]
  for (let hour = Math.floor((start + offset) / HOUR) * HOUR; hour < end + offset; hour += HOUR) {
    const local = new Date(hour)
    if (
      !hours.has(local.getUTCHours()) ||
      !days.has(local.getUTCDate()) ||
      !months.has(local.getUTCMonth() + 1) ||
      !weekdays.has(local.getUTCDay())
    )
      continue
    const first = hour - offset
    const whole = first >= start && first + HOUR <= end
    const inside = whole
      ? minutes
      : minutes.filter((minute) => first + minute * MINUTE >= start && first + minute * MINUTE < end)
    if (inside.length > 0) visit(first, inside)
  }
}

/** A time zone. Local times are `Date`s whose UTC fields are those of the zone's clocks. */
interface Zone {
  /** How far the clocks of the zone are ahead of UTC at a time. */
  offset(time: number): number
  local(time: number): Date
  /** As Go's `time.Date`: which copy of a repeated time it is depends on the zone. */
  at(year: number, month: number, day: number, hour: number, minute: number): number
  weekday(year: number, month: number, day: number, hour: number, minute: number): number
}

function zoneOf(timezone: string): Zone {
  const offset = offsetIn(timezone)
  const local = (time: number) => new Date(time + offset(time))
  const at: Zone['at'] = (year, month, day, hour, minute) => {
    const clocks = Date.UTC(year, month - 1, day, hour, minute)
    return clocks - offset(clocks - offset(clocks))
  }
  return { offset, local, at, weekday: (...date) => local(at(...date)).getUTCDay() }
}

function offsetIn(timezone: string): (time: number) => number {
  if (timezone === 'UTC') return () => 0
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  const compute = (time: number): number => {
    const parts = Object.fromEntries(
      format.formatToParts(time).map(({ type, value }) => [type, Number(value)]),
    )
    const { year = 0, month = 1, day, hour, minute, second } = parts
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1_000) * 1_000
  }
  // Since 1973 clocks have changed at whole quarters of an hour only. Intl takes microseconds for each time.
  const known = new Map<number, number>()
  return (time) => {
    const quarter = Math.floor(time / (15 * MINUTE))
    const offset = known.get(quarter) ?? compute(quarter * 15 * MINUTE)
    known.set(quarter, offset)
    return offset
  }
}
