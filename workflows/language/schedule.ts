/**
 * The cron expressions and time zones of schedule triggers. The grammar is Temporal's five-field one, because Temporal
 * fires the schedules; a test compares the two. Libraries accept other dialects: croner 11 and cron-parser 5 accept
 * `L`, which Temporal refuses, and match a date that fits either day field, where Temporal requires both.
 */

interface Field {
  name: string
  least: number
  most: number
  /** The names of its values, in ascending order. */
  words?: string[]
}

export const FIELDS: readonly Field[] = [
  { name: 'minute', least: 0, most: 59 },
  { name: 'hour', least: 0, most: 23 },
  { name: 'day of the month', least: 1, most: 31 },
  { name: 'month', least: 1, most: 12, words: 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ') },
  { name: 'day of the week', least: 0, most: 7, words: 'SUN MON TUE WED THU FRI SAT'.split(' ') },
]

/** The problems of a cron expression; none if it is valid. */
export function cronProblems(cron: string): string[] {
  const parts = cron.trim().split(/\s+/)
  if (parts.length !== FIELDS.length)
    return [`must have five fields: ${FIELDS.map(({ name }) => name).join(', ')}`]
  return FIELDS.flatMap((field, index) => {
    const part = parts[index]!
    const { name, least, most } = field
    if (part.split(',').every((item) => fits(item, field))) return []
    const forms = `*, ${least} to ${most}, a range (1-5), a step (*/2) or a list of these`
    return [`has an invalid ${name}, ${part.slice(0, 40)}: use ${forms}`]
  })
}

/** The most days that each month has. */
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Whether a valid cron expression names only dates that do not exist, such as 30 February. */
export function neverFires(cron: string): boolean {
  const [, , days = '', months = ''] = cron.trim().split(/\s+/)
  const first = Math.min(...valuesOf(days, FIELDS[2]!))
  return valuesOf(months, FIELDS[3]!).every((month) => first > DAYS[month - 1]!)
}

/**
 * Whether a valid cron expression names single days of the month and days of the week: it then fires only on a day that
 * fits both, where cron fires on either. False for a range such as `1-7 * mon` (the first Monday of a month), whose
 * author means both.
 */
export function needsBothDays(cron: string): boolean {
  const [, , days = '', , weekdays = ''] = cron.trim().split(/\s+/)
  return weekdays !== '*' && /^\d+(,\d+)*$/.test(days)
}

export interface LongStep {
  /** The name of the field, and the item of its list. */
  field: string
  item: string
  /** The only value that the item names. */
  only: number
  /** What to write instead: the duration of an interval, where the step was meant as one, or the corrected expression. */
  every?: string
  cron: string
}

/**
 * The steps of a valid cron expression that are longer than their range, such as every 90 minutes of an hour. A step
 * begins anew with each hour, day, month or year, so these name one value only.
 */
export function longSteps(cron: string): LongStep[] {
  const parts = cron.trim().split(/\s+/)
  return FIELDS.flatMap((field, index) =>
    parts[index]!.split(',').flatMap((item, place, items) => {
      const [range = '', step] = item.split('/')
      if (step === undefined) return []
      const whole = range === '*'
      const [from, to] = whole ? [field.least, field.most] : rangeOf(range, true, field)
      // A step as long as the whole range fires as it says: `*/24` hours is once a day. 7 is another Sunday.
      const size = whole ? to - from + (field.most === 7 ? 0 : 1) : to - from
      if (Number(step) <= size) return []
      const others = parts.with(index, items.with(place, String(from)).join(','))
      const every = whole && items.length === 1 ? intervalOf(parts, index, step) : undefined
      return [{ field: field.name, item, only: from, ...(every && { every }), cron: others.join(' ') }]
    }),
  )
}

/** The interval that a step in minutes, hours or days means, if the smaller fields name one time and the others all. */
function intervalOf(parts: string[], index: number, step: string): string | undefined {
  const unit = ['m', 'h', 'd'][index]
  const isOne = parts.slice(0, index).every((part) => /^\d+$/.test(part))
  const isAll = parts.slice(index + 1).every((part) => part === '*')
  return unit !== undefined && isOne && isAll ? `${step}${unit}` : undefined
}

/** The values that a valid field names, in the order of its list. */
export function valuesOf(part: string, field: Field): number[] {
  return part.split(',').flatMap((item) => {
    const [range = '', step] = item.split('/')
    const [from, to] = range === '*' ? [field.least, field.most] : rangeOf(range, step !== undefined, field)
    const by = Number(step ?? 1)
    return Array.from({ length: Math.floor((to - from) / by) + 1 }, (_, index) => from + index * by)
  })
}

/** The first and the last value of `5`, `5-10`, `*`, or `5/10`, which goes from 5 to the end. */
function rangeOf(range: string, stepped: boolean, field: Field): [number, number] {
  const [from = '', to] = range.split('-')
  const first = numberOf(from, field)
  if (to !== undefined) return [first, numberOf(to, field)]
  return [first, stepped ? field.most : first]
}

/** Checks one item of a list: `*`, a value or a range, with an optional step. */
function fits(item: string, field: Field): boolean {
  const [whole, from, to, step] = /^(\*|\d+|[a-z]+)(?:-(\d+|[a-z]+))?(?:\/(\d+))?$/i.exec(item) ?? []
  if (!whole || !from || (step !== undefined && Number(step) === 0)) return false
  if (from === '*') return to === undefined
  const first = numberOf(from, field)
  const last = to === undefined ? first : numberOf(to, field)
  return first >= field.least && last <= field.most && first <= last
}

function numberOf(text: string, { least, words = [] }: Field): number {
  const index = words.indexOf(text.toUpperCase())
  return index >= 0 ? least + index : Number(text)
}
