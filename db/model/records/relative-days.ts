/** Days that filters name relative to today, such as `today`, `last_7_days` or `next_quarter`. */

/** For descriptions and errors. */
export const RELATIVE_DAYS =
  '`today`, `yesterday`, `tomorrow`, `this_week`, `last_month`, `next_quarter`, `this_year` (`this`, `last` or `next` of these four; weeks begin on Monday), `last_7_days` (any number of days that ends today) or `next_7_days` (that begins today)'

export const RELATIVE_DAY =
  /^(?:(today|yesterday|tomorrow)|(this|last|next)_(week|month|quarter|year)|(last|next)_([1-9]\d{0,3})_days)$/

/** The operators that take them. */
const OPERATORS: readonly string[] = ['eq', 'gt', 'gte', 'lt', 'lte', 'between', 'not_since']

export const RELATIVE_OPERATORS = `days such as today are compared by ${OPERATORS.join(', ')}`

/** Whether a filter of dates or times compares relative days by an operator that does not take them. */
export const isMisused = (operator: string, values: readonly string[]): boolean =>
  values.some(isRelativeDay) && !OPERATORS.includes(operator)

/** The same filter with dates. `days` have days in their values only if `isMisused` is false. */
export function withDates<T extends { operator: string; values: string[] }>(filter: T, today: string): T {
  const { operator, values } = filter
  if (!values.some(isRelativeDay)) return filter
  const ends = values.map((value) => daysOf(value, today) ?? [value, value])
  const [first, last] = [ends[0]![0]!, ends.at(-1)![1]!]
  if (operator === 'eq' || operator === 'between')
    return { ...filter, operator: 'between', values: [first, last] }
  return { ...filter, values: [operator === 'gt' || operator === 'lte' ? last : first] }
}

export const isRelativeDay = (text: string): boolean => RELATIVE_DAY.test(text)

/** The first and the last of the days, in the form of dates; undefined for other text. */
export function daysOf(text: string, today: string): [first: string, last: string] | undefined {
  const [, day, which, unit, side, count] = RELATIVE_DAY.exec(text) ?? []
  if (day) {
    const one = moved(today, DAYS[day]!)
    return [one, one]
  }
  if (count)
    return side === 'last'
      ? [moved(today, 1 - Number(count)), today]
      : [today, moved(today, Number(count) - 1)]
  if (!which || !unit) return undefined
  const first = startOf(unit, today, STEPS[which]!)
  return [first, moved(startOf(unit, first, 1), -1)]
}

const DAYS: Record<string, number> = { yesterday: -1, today: 0, tomorrow: 1 }
const STEPS: Record<string, number> = { last: -1, this: 0, next: 1 }
const MONTHS: Record<string, number> = { month: 1, quarter: 3, year: 12 }

function moved(date: string, days: number): string {
  const moment = new Date(`${date}T00:00:00Z`)
  moment.setUTCDate(moment.getUTCDate() + days)
  return moment.toISOString().slice(0, 10)
}

/** The first day of the week, month, quarter or year that is `steps` after that of the date. */
function startOf(unit: string, date: string, steps: number): string {
  const moment = new Date(`${date}T00:00:00Z`)
  if (unit === 'week') return moved(date, 7 * steps - ((moment.getUTCDay() + 6) % 7))
  const months = MONTHS[unit]!
  const month = moment.getUTCMonth() - (moment.getUTCMonth() % months) + steps * months
  return new Date(Date.UTC(moment.getUTCFullYear(), month, 1)).toISOString().slice(0, 10)
}
