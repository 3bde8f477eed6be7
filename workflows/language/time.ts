import { LRUCache } from 'lru-cache'

/**
 * `2026-03-01`, or with a time `2026-03-01T09:30`, `…:00.000`, and an offset `Z`, `UTC`, `+01:00`, `+0100`, or `+01` as
 * PostgreSQL writes it.
 */
const TIME =
  /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(?: ?([Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?$/

/**
 * The moment that a text names. A date is its midnight; a text without an offset is local time in `timezone` (IANA). A
 * local time that a change of clocks skips is moved behind the gap; of one that the clocks show twice it is the first.
 * Undefined if the text is not a time.
 */
export function parseTime(text: string, timezone = 'UTC'): Date | undefined {
  const [, date, time = '00:00', offset] = TIME.exec(text.trim()) ?? []
  const local = Date.parse(`${date}T${time}Z`)
  // Date.parse reads 30 February as 2 March.
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 10) !== date) return undefined
  if (offset === undefined) return new Date(fromLocal(local, timezone))
  const minutes = minutesOf(offset)
  return minutes === undefined ? undefined : new Date(local - minutes * 60_000)
}

function fromLocal(local: number, timezone: string): number {
  const at = offsetsOf(timezone)
  const [before, after] = [at(local - DAY_MS), at(local + DAY_MS)]
  const fits = [before, after]
    .map((offset) => local - offset)
    .filter((moment) => moment + at(moment) === local)
  return fits.length > 0 ? Math.min(...fits) : local - before
}

const DAY_MS = 86_400_000

function minutesOf(offset: string): number | undefined {
  const [, sign, hours, minutes = '00'] = /^([+-])(\d\d)(?::?(\d\d))?$/.exec(offset) ?? []
  if (sign === undefined) return 0
  if (Number(hours) > 14 || Number(minutes) > 59) return undefined
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes))
}

/** The milliseconds by which the clocks of a time zone are ahead of UTC at a moment. */
const offsetAt = (moment: number, timezone: string): number => offsetsOf(timezone)(moment)

/**
 * The time zones that were used last: creating the format of one takes most of the time. Comparing 10,000 local times of
 * Zurich takes 169 ms instead of 928.
 */
const zones = new LRUCache<string, (moment: number) => number>({ max: 50 })

/** The same for many moments. */
export function offsetsOf(timezone: string): (moment: number) => number {
  if (timezone === 'UTC') return () => 0
  const known = zones.get(timezone) ?? readOffsets(timezone)
  zones.set(timezone, known)
  return known
}

function readOffsets(timezone: string): (moment: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' })
  return (moment) => {
    const name = format.formatToParts(moment).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    return (minutesOf(name.replace('GMT', '')) ?? 0) * 60_000
  }
}

/** Whether a text is a day without a time, such as `2026-03-01`. */
export const isDay = (text: string): boolean => /^\s*\d{4}-\d\d-\d\d\s*$/.test(text)

const ORDERS = { ymd: [0, 1, 2], dmy: [2, 1, 0], mdy: [2, 0, 1] } as const

/** A day as people write it, such as `1.3.2026`, in the form `2026-03-01`; undefined if the text is not a day. */
export function parseDay(text: string, order: keyof typeof ORDERS): string | undefined {
  const found = /^\s*(\d{1,4})[-./ ](\d{1,2})[-./ ](\d{1,4})\s*$/.exec(text)
  if (!found) return undefined
  const [year, month, day] = ORDERS[order].map((part) => Number(found[part + 1])) as [number, number, number]
  const date = new Date(Date.UTC(year, month - 1, day))
  // Date would convert 31 February to March; a two-digit year is ambiguous.
  const exact = year >= 1000 && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return exact ? date.toISOString().slice(0, 10) : undefined
}

export interface TimeSpan {
  years?: number | undefined
  months?: number | undefined
  weeks?: number | undefined
  days?: number | undefined
  hours?: number | undefined
  minutes?: number | undefined
}

/**
 * Adds a span to a moment: years to days in the calendar of a time zone, so that the local time stays, hours and
 * minutes as elapsed time. A day that a month does not have becomes its last one. Undefined outside of the years 1 to
 * 9999.
 */
export function addTime(moment: Date, span: TimeSpan, timezone: string): Date | undefined {
  const { years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0 } = span
  const local = new Date(moment.getTime() + offsetAt(moment.getTime(), timezone))
  const day = local.getUTCDate()
  local.setUTCDate(1)
  local.setUTCMonth(local.getUTCMonth() + years * 12 + months)
  local.setUTCDate(Math.min(day, daysOf(local)) + weeks * 7 + days)
  const clock = (hours * 60 + minutes) * 60_000
  if (!isWritable(local) || !isWritable(new Date(local.getTime() + clock))) return undefined
  const calendar = years || months || weeks || days
  const begin = calendar ? parseTime(local.toISOString().slice(0, -1), timezone) : moment
  return begin && new Date(begin.getTime() + clock)
}

const daysOf = (month: Date) =>
  new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 0)).getUTCDate()

/** Whether a moment is in the years 1 to 9999, which are written with four digits, in every time zone. */
export const isWritable = (moment: Date): boolean =>
  moment.getTime() >= FIRST_MS && moment.getTime() < LAST_MS

const FIRST_MS = Date.parse('0001-01-02T00:00:00Z')
const LAST_MS = Date.parse('9999-12-31T00:00:00Z')

/** A moment on the clocks and in the calendar of a time zone; weekdays are 1 (Monday) to 7. */
export function localParts(moment: Date, timezone: string): { date: string; time: string; weekday: number } {
  const local = new Date(moment.getTime() + offsetAt(moment.getTime(), timezone))
  const text = local.toISOString()
  return { date: text.slice(0, 10), time: text.slice(11, 16), weekday: local.getUTCDay() || 7 }
}
