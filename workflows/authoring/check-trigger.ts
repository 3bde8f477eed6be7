import { alwaysHolds, checkEventNames, textProblem } from '../language/check-events.ts'
import type { Definition, ScheduleSpec, Trigger } from '../language/definition.ts'
import { parseDuration } from '../language/duration.ts'
import { referencesIn } from '../language/expressions/references.ts'
import { hasPlaceholder, parseAuthored, syntaxProblem } from '../language/expressions/template.ts'
import { nearestName, type Problem, pointer, REMOVE, write } from '../language/problems.ts'
import { flowText } from '../language/repair.ts'
import { cronProblems, longSteps, needsBothDays, neverFires } from '../language/schedule.ts'
import { shortestGap } from '../language/schedule-times.ts'
import { isTimezone } from '../shared/timezone.ts'

/** Checks the trigger, and that it can start the workflow: runs of events and schedules have no inputs. */
export function checkTrigger({ trigger, inputs }: Pick<Definition, 'trigger' | 'inputs'>): Problem[] {
  if (trigger.type === 'event') return [...eventProblems(trigger), ...inputProblems(trigger, inputs)]
  if (trigger.type === 'schedule') return [...scheduleProblems(trigger), ...inputProblems(trigger, inputs)]
  return []
}

type EventTrigger = Trigger & { type: 'event' }
type ScheduleTrigger = Trigger & { type: 'schedule' }

const eventProblems = ({ events, when }: EventTrigger): Problem[] => [
  ...checkEventNames(events).map((problem) => ({
    ...problem,
    path: `/trigger/events${pointer(...problem.path)}`,
  })),
  ...(when === undefined ? [] : whenProblems(when)),
]

/** The roots that a trigger's `when` can read: there is no run yet. */
export const WHEN_ROOTS = ['trigger', 'org', 'env']

function whenProblems(when: string): Problem[] {
  const path = '/trigger/when'
  if (!hasPlaceholder(when)) return [{ ...alwaysHolds(when), path }]
  const text = textProblem(when)
  if (text) return [{ ...text, path }]
  try {
    return referencesIn(parseAuthored(when).parts).flatMap(({ path: [root] }): Problem[] => {
      if (typeof root === 'string' && !WHEN_ROOTS.includes(root))
        return [
          {
            code: 'unknown_root',
            message: `${root.slice(0, 100)} is not available before a run: a placeholder in when starts with one of ${WHEN_ROOTS.join(', ')}`,
            path,
            ...(root === 'nodes' || root === 'inputs' || root === 'run'
              ? {
                  hint: `a \`condition\` as the first node, or after the one that it reads, can test ${root}`,
                }
              : nearestName(root, WHEN_ROOTS)),
          },
        ]
      return []
    })
  } catch (error) {
    return [{ code: 'placeholder_syntax', ...syntaxProblem(error), path }]
  }
}

const scheduleProblems = (trigger: ScheduleTrigger): Problem[] => {
  const { cron, every, offset, timezone } = trigger
  const timing =
    cron === undefined
      ? intervalProblems({ every, offset, timezone })
      : [
          ...cronFindings(cron),
          ...timezoneProblems(timezone),
          ...beside('every', every),
          ...beside('offset', offset),
        ]
  return timing.length > 0 ? timing : [...stepFindings(cron), ...bothDays(cron), ...jitterProblems(trigger)]
}

/** A member of an interval beside `cron`. */
const beside = (name: string, value: string | undefined): Problem[] =>
  value === undefined
    ? []
    : [
        {
          code: 'conflicting_times',
          message: `${name} and cron exclude each other: a schedule has either an interval or a cron expression`,
          path: `/trigger/${name}`,
          atKey: true,
          hint: `remove ${name}, or cron`,
        },
      ]

function cronFindings(cron: string): Problem[] {
  const syntax = cronProblems(cron)
  if (syntax.length > 0)
    return syntax.map((message) => ({
      code: 'cron_syntax',
      message: `cron ${message}`,
      path: '/trigger/cron',
      // Four fields most likely lack the day of the week.
      ...(cronProblems(`${cron} *`).length === 0 ? { hint: write(`${cron.trim()} *`) } : {}),
    }))
  if (!neverFires(cron)) return []
  return [
    {
      code: 'cron_never_fires',
      message: 'cron names only days that do not exist, such as 30 February: it would never fire',
      path: '/trigger/cron',
    },
  ]
}

const stepFindings = (cron: string | undefined): Problem[] =>
  longSteps(cron ?? EVERY_MINUTE).map(({ field, item, only, every, cron: better }) => ({
    code: 'cron_step',
    message: `the step of ${item.slice(0, 40)} is longer than its range: it names the ${field} ${only} only, because steps begin anew with each hour, day, month or year`,
    path: '/trigger/cron',
    hint:
      every === undefined
        ? write(flowText(better))
        : `replace cron by \`every: ${every}\`, or write ${only} if that is meant`,
  }))

function bothDays(cron: string | undefined): Problem[] {
  if (cron === undefined || !needsBothDays(cron)) return []
  const [minute, hour, days, month, weekdays] = cron.trim().split(/\s+/)
  return [
    {
      code: 'cron_both_days',
      message: `cron fires only on a day of the month ${days} that is also a day of the week ${weekdays}: it needs both, where other crons fire on either`,
      path: '/trigger/cron',
      hint: `for one of them, write ${[minute, hour, days, month, '*'].join(' ')} or ${[minute, hour, '*', month, weekdays].join(' ')}; for either, use two workflows`,
    },
  ]
}

const EVERY_MINUTE = '* * * * *'

const timezoneProblems = (timezone: string): Problem[] =>
  isTimezone(timezone)
    ? []
    : [
        {
          code: 'unknown_timezone',
          message: `${timezone.slice(0, 100)} is not a time zone: use an IANA name, such as Europe/Zurich`,
          path: '/trigger/timezone',
          ...nearestName(timezone, Intl.supportedValuesOf('timeZone')),
        },
      ]

function intervalProblems({
  every,
  offset,
  timezone,
}: { [K in 'every' | 'offset']: string | undefined } & { timezone: string }): Problem[] {
  if (every === undefined)
    return [
      {
        code: 'missing_key',
        message: 'a schedule needs cron or every',
        path: '/trigger',
        hint: 'add `cron: "0 8 * * *"`, or `every: 15m`',
      },
    ]
  const problems: Problem[] = []
  if (offset !== undefined && parseDuration(offset)! >= parseDuration(every)!)
    problems.push({
      code: 'conflicting_times',
      message: `offset must be shorter than the interval, ${every}`,
      path: '/trigger/offset',
    })
  if (timezone !== 'UTC')
    problems.push({
      code: 'conflicting_times',
      message: 'timezone has no effect on an interval, which is counted in UTC from 1970 on',
      path: '/trigger/timezone',
      hint: localCron(every, offset, timezone) ?? REMOVE,
    })
  return problems
}

const MINUTE_MS = 60_000

/** The cron of an interval of a day at a local time; undefined for other intervals, which have no time of day. */
function localCron(every: string, offset: string | undefined, timezone: string): string | undefined {
  const minutes = offset === undefined ? 0 : parseDuration(offset)! / MINUTE_MS
  if (parseDuration(every) !== 24 * 60 * MINUTE_MS || !Number.isInteger(minutes) || minutes >= 24 * 60)
    return undefined
  const cron = `${minutes % 60} ${Math.floor(minutes / 60)} * * *`
  const instead = offset === undefined ? '`every`' : '`every` and `offset`'
  return `for this time of the day in ${timezone}, use \`cron: "${cron}"\` in place of ${instead}`
}

function jitterProblems(schedule: ScheduleSpec): Problem[] {
  const { jitter } = schedule
  if (jitter === undefined) return []
  const gap = shortestGap(schedule)
  if (parseDuration(jitter)! <= gap) return []
  return [
    {
      code: 'conflicting_times',
      message: `jitter is longer than the time between two runs, ${gap / 1_000}s`,
      path: '/trigger/jitter',
      hint: write(`${gap / 1_000}s`),
    },
  ]
}

const inputProblems = ({ type }: Trigger, inputs: Definition['inputs']): Problem[] =>
  Object.entries(inputs)
    .filter(([, input]) => input.required && input.default === undefined)
    .map(([name]) => ({
      code: 'input_without_default',
      message: `${name} is required, but runs of ${type === 'event' ? 'an event' : 'a schedule'} trigger have no inputs`,
      path: `/inputs${pointer(name)}`,
      hint: 'give it a default, or read the trigger instead',
    }))
