import { z } from 'zod'
import { NodeError } from '../language/node-error.ts'
import { parseTime } from '../language/time.ts'
import { isTimezone, NO_TIMEZONE } from '../shared/timezone.ts'
import { defineNode } from './define.ts'

const MAX_YEARS = 5

const time = z
  .string()
  .refine((text) => parseTime(text) !== undefined, {
    error: ({ input }) =>
      `must be a time such as 2026-03-01T09:00:00Z, or a date such as 2026-03-01, but is ${JSON.stringify(String(input).slice(0, 100))}`,
  })
  .describe(
    `The time to wait for: \`2026-03-01T09:00:00Z\`, \`2026-03-01T09:00\` or \`2026-03-01\` (its midnight). At most ${MAX_YEARS} years ahead.`,
  )

export const waitUntil = defineNode({
  type: 'wait_until',
  engine: 2,
  category: 'time',
  title: 'Wait until',
  alsoCalled: ['wait_till', 'until', 'schedule_at', 'sleep_until'],
  description:
    'Waits until a time, then continues; at once if the time has passed. The wait is durable, also over months: restarts of the service do not change its end.',
  effect: 'pure',
  config: z.strictObject({
    until: time,
    timezone: z
      .string()
      .refine(isTimezone, NO_TIMEZONE)
      .optional()
      .describe(
        'The time zone of a time without an offset, and of a date. Default: that of the organization.',
      ),
  }),
  output: z.strictObject({ until: z.iso.datetime().describe('The time, in UTC.') }),
  handles: () => [{ name: 'success', description: 'The time has come.' }],
  example: {
    config: { until: '{{ trigger.record.expected_close_date }}', timezone: 'Europe/Zurich' },
    inputs: { trigger: { record: { expected_close_date: '2026-07-01' } } },
    output: { until: '2026-06-30T22:00:00.000Z' },
  },
  run({ until, timezone }, { now, organization }) {
    const moment = parseTime(until, timezone ?? organization.timezone)!
    const output = { until: moment.toISOString() }
    if (moment <= now) return { output }
    const latest = new Date(now)
    latest.setUTCFullYear(now.getUTCFullYear() + MAX_YEARS)
    if (moment > latest)
      throw new NodeError(
        'time_too_far',
        `The time ${output.until} is more than ${MAX_YEARS} years ahead: a run cannot wait that long.`,
      )
    return { wait_until: moment, output }
  },
})
