import { type FilterImplOptions, toValue } from 'liquidjs'
import { meantField } from '../../shared/misspelt-field.ts'
import { isDay, parseTime } from '../time.ts'
import { expanded, formatProblem, namesUtc } from './date-format.ts'
import { BY_FIELD, resultOf } from './filters.ts'
import { type Applied, timezoneIn } from './scope-context.ts'
import { isEmpty } from './truth.ts'

/**
 * LiquidJS's filters make something of every value: of a list its items without separators, of a text that is no time
 * the text itself. Here such a value is an error for the author, because the result would look right.
 */

type Handler = (this: Applied, ...values: unknown[]) => unknown

/** The filters that write a list or a mapping as text. */
const WRITE_LISTS = ['join', 'array_to_sentence_string', 'json', 'sha256', 'slice']
const DATES = ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string']

/** Filters of any value. `default` replaces what is empty; `false` is a value, as 0 is. */
export const valueFilters: Record<string, FilterImplOptions> = {
  default: (value: unknown, other: unknown) => (isEmpty(value) ? other : value),
  size: (value: unknown) => {
    if (typeof value === 'string' || Array.isArray(value)) return value.length
    return typeof value === 'object' && value !== null ? Object.keys(value).length : 0
  },
  /** A blank is `%20`, which a path and a query understand; the `+` of LiquidJS is a plus sign in a path. */
  url_encode: (value: unknown) => encodeURIComponent(String(toValue(value) ?? '')),
}

/** The same filter, which refuses what it cannot be meant for. */
export function strictFilter(name: string, filter: FilterImplOptions): FilterImplOptions {
  const handler = (typeof filter === 'function' ? filter : filter.handler) as Handler
  const strict = strictHandler(name, handler)
  return typeof filter === 'function'
    ? (strict as FilterImplOptions)
    : ({ ...filter, handler: strict } as FilterImplOptions)
}

function strictHandler(name: string, handler: Handler): Handler {
  if (name === 'date') return strictDate(handler)
  if (DATES.includes(name))
    return function (value, ...args) {
      requireTime(value)
      return handler.call(this, momentOf(value, timezoneIn(this.context)), ...args)
    }
  if (BY_FIELD.includes(name))
    return function (value, ...args) {
      refuseMisspelt(name, value, args[0])
      return handler.call(this, value, ...args)
    }
  const require = requirementOf(name)
  if (!require) return handler
  return function (value, ...args) {
    require(value)
    return handler.call(this, value, ...args)
  }
}

/** Every item has the same value of a misspelt field: none. */
function refuseMisspelt(name: string, list: unknown, field: unknown): void {
  if (typeof field === 'boolean')
    throw new Error(`${name} takes the name of a field, such as ${name}: "name", and not ${field}`)
  if (typeof field !== 'string' || !Array.isArray(list)) return
  const meant = meantField(list, field)
  if (meant !== undefined)
    throw new Error(`no item of the list has the field ${field.slice(0, 100)}: did you mean ${meant}?`)
}

/**
 * `date` with the directives that LiquidJS does not have, and without what it would write as it is. It writes the time
 * zone that is given, or else that of the organization, which is the default of `ScopeContext`.
 */
function strictDate(handler: Handler): Handler {
  return function (value, format, ...given) {
    requireTime(value)
    // A day has no time zone: its midnight in UTC would be the day before in the west.
    const isWhole = typeof value === 'string' && isDay(value)
    const moment = isWhole ? value : momentOf(value, timezoneIn(this.context))
    const inUtc = isWhole || (given.length === 0 && typeof format === 'string' && namesUtc(format))
    const args = inUtc ? [0] : given
    if (typeof format !== 'string') return handler.call(this, moment, format, ...args)
    const wrong = formatProblem(format)
    if (wrong)
      throw new Error(wrong.meant === undefined ? wrong.problem : `${wrong.problem}: write ${wrong.meant}`)
    const known = expanded(format, () => String(handler.call(this, moment, '%Y-%m-%d', ...args)))
    return handler.call(this, moment, known, ...args)
  }
}

/** A time as `parseTime` reads it, without an offset in a time zone, as a moment; any other value as it is. */
const momentOf = (value: unknown, timezone: string): unknown =>
  typeof value === 'string' ? (parseTime(value, timezone)?.toISOString() ?? value) : value

function requirementOf(name: string): ((value: unknown) => void) | undefined {
  if (name === 'concat') return requireList
  if (resultOf(name) === 'text' && !WRITE_LISTS.includes(name)) return (value) => requireText(name, value)
  return undefined
}

function requireText(name: string, value: unknown): void {
  if (Array.isArray(value))
    throw new Error(`${name} takes a text, but gets a list: write \`| join: ", "\` before it`)
  if (typeof value === 'object' && value !== null)
    throw new Error(`${name} takes a text, but gets a mapping: read one of its members`)
}

function requireList(value: unknown): void {
  if (typeof value === 'string' || typeof value === 'number')
    throw new Error('concat joins two lists: `append` joins two texts')
}

/** A day of the week and a day, as mails have them. */
const OF_MAILS = /^[A-Za-z]{3}, \d/

/** From this number on, the seconds since 1970 are in the year 5138: milliseconds were meant. */
const MILLISECONDS = 100_000_000_000

function requireTime(value: unknown): void {
  if (Number(value) >= MILLISECONDS)
    throw new Error(
      'a number is the seconds since 1970, and this one has milliseconds: divide it by 1000 before',
    )
  if (typeof value !== 'string' || value === '') return
  const isTime =
    /^\d+$/.test(value) ||
    value === 'now' ||
    value === 'today' ||
    parseTime(value) !== undefined ||
    (OF_MAILS.test(value) && !Number.isNaN(Date.parse(value)))
  if (!isTime)
    throw new Error(
      `${JSON.stringify(value.slice(0, 50))} is no time such as 2026-01-31T09:00:00Z; a node that formats dates reads other forms`,
    )
}
