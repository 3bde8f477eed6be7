import { z } from 'zod'
import { formatProblem } from '../language/expressions/date-format.ts'
import { render } from '../language/expressions/liquid.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { NodeError } from '../language/node-error.ts'
import { addTime, isWritable, localParts, parseDay, parseTime } from '../language/time.ts'
import { EXPRESSION } from '../shared/limits.ts'
import { isTimezone, NO_TIMEZONE } from '../shared/timezone.ts'
import { defineNode } from './define.ts'

const READINGS = ['iso', 'ymd', 'dmy', 'mdy', 'unix', 'unix_ms'] as const
type Reading = (typeof READINGS)[number]

const amount = (most: number) => z.int().min(-most).max(most).optional()

export const formatDate = defineNode({
  type: 'format_date',
  engine: 4,
  category: 'data',
  title: 'Format date',
  alsoCalled: ['date', 'date_time', 'datetime', 'parse_date', 'add_time', 'date_add', 'format_time', 'now'],
  description:
    'Reads a date or a time in many forms, adds to it if wanted, and writes it in a chosen form and time zone. Use it for due dates, and for dates in messages.',
  effect: 'pure',
  config: z.strictObject({
    value: z
      .union([z.string().max(100), z.number()])
      .default('now')
      .describe('The date or time to read. Default: `now`, the time at which the node runs.'),
    read_as: z
      .enum(READINGS)
      .default('iso')
      .describe(
        'How `value` is written. `iso`: 2026-03-01, 2026-03-01T09:30 or with an offset; `dmy`: 1.3.2026; `mdy`: 3/1/2026; `ymd`: 2026/3/1; `unix`, `unix_ms`: seconds or milliseconds since 1970.',
      ),
    timezone: z
      .string()
      .refine(isTimezone, NO_TIMEZONE)
      .optional()
      .describe(
        'The time zone of the result, and of a value without an offset: `Europe/Zurich`. Default: that of the organization.',
      ),
    add: z
      .strictObject({
        years: amount(1_000),
        months: amount(10_000),
        weeks: amount(50_000),
        days: amount(400_000),
        hours: amount(1_000_000),
        minutes: amount(10_000_000),
      })
      .optional()
      .describe(
        'What to add, or with a minus to subtract: `{days: 14, hours: -1}`. A month later than 31 January is the last of February; days keep the local time.',
      ),
    format: z
      .string()
      .min(1)
      .max(EXPRESSION.dateFormat)
      .superRefine((format, { addIssue }) => {
        const wrong = hasPlaceholder(format) ? undefined : formatProblem(format)
        if (wrong)
          addIssue({
            code: 'custom',
            message: `is wrong: ${wrong.problem}${wrong.meant === undefined ? '; %Y-%m-%d %H:%M:%S, %A, %B, %-d and others are directives' : `: ${wrong.meant}`}`,
          })
      })
      .default('%Y-%m-%d')
      .describe(
        'The form of `text`, as in the filter `date`: `%d.%m.%Y %H:%M`, `%A, %-d %B %Y`. Names are English.',
      ),
  }),
  output: z.strictObject({
    text: z.string().describe('The time in the chosen form.'),
    iso: z.iso.datetime().describe('The moment in UTC, as records hold it.'),
    date: z.string().describe('The day in the time zone: `2026-03-01`.'),
    time: z.string().describe('The time of day in the time zone: `09:30`.'),
    weekday: z.int().describe('The day of the week, from 1 for Monday to 7 for Sunday.'),
    unix: z.int().describe('Seconds since 1970.'),
  }),
  handles: () => [{ name: 'success', description: 'The time is written.' }],
  outputOnly: true,
  example: {
    config: {
      value: '{{ trigger.record.closed_at }}',
      timezone: 'Europe/Zurich',
      add: { days: 14 },
      format: '%d.%m.%Y',
    },
    inputs: { trigger: { record: { closed_at: '2026-03-20T15:00:00.000Z' } } },
    output: {
      text: '03.04.2026',
      iso: '2026-04-03T14:00:00.000Z',
      date: '2026-04-03',
      time: '16:00',
      weekday: 5,
      unix: 1775224800,
    },
  },
  run({ value, read_as, add, format, ...given }, { now, organization }) {
    const timezone = given.timezone ?? organization.timezone
    const read = value === 'now' ? now : readTime(value, read_as, timezone)
    if (!read || !isWritable(read)) throw invalidDate(value, read_as)
    const moment = add ? addTime(read, add, timezone) : read
    if (!moment) throw new NodeError('invalid_date', 'The result is not in the years 1 to 9999.')
    const { date, time, weekday } = localParts(moment, timezone)
    const iso = moment.toISOString()
    const text = String(render('{{ iso | date: format, timezone }}', { iso, format, timezone }))
    return { output: { text, iso, date, time, weekday, unix: Math.floor(moment.getTime() / 1000) } }
  },
})

function readTime(value: string | number, read_as: Reading, timezone: string): Date | undefined {
  const text = String(value).trim()
  switch (read_as) {
    case 'iso':
      return parseTime(text, timezone)
    case 'unix':
    case 'unix_ms': {
      const moment = new Date(Number(text || Number.NaN) * (read_as === 'unix' ? 1000 : 1))
      return Number.isNaN(moment.getTime()) ? undefined : moment
    }
    default: {
      const day = parseDay(text, read_as)
      return day === undefined ? undefined : parseTime(day, timezone)
    }
  }
}

function invalidDate(value: string | number, read_as: Reading): NodeError {
  const shown = JSON.stringify(value)
  const instead =
    read_as === 'iso'
      ? 'write 2026-03-01 or 2026-03-01T09:30:00Z, or say with `read_as` how it is written'
      : `it was read as ${read_as}: set \`read_as\` to one of ${READINGS.join(', ')}`
  return new NodeError('invalid_date', `${shown} is not a time: ${instead}.`)
}
