import { alwaysHolds, checkEventNames } from '../language/check-events.ts'
import type { Definition, Trigger } from '../language/definition.ts'
import { references } from '../language/expressions/references.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { nearestName, type Problem, pointer, writeInstead } from '../language/problems.ts'
import { cronProblems, neverFires } from '../language/schedule.ts'
import { isTimezone } from '../shared/timezone.ts'
import { EVENT_MEMBERS } from './trigger-members.ts'

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
const WHEN_ROOTS = ['trigger', 'org', 'env']

function whenProblems(when: string): Problem[] {
  const path = '/trigger/when'
  if (!hasPlaceholder(when)) return [{ ...alwaysHolds(when), path }]
  try {
    return references(when).flatMap(({ path: [root, member] }): Problem[] => {
      if (typeof root === 'string' && !WHEN_ROOTS.includes(root))
        return [
          {
            code: 'unknown_root',
            message: `${root.slice(0, 100)} is not available before a run: a placeholder in when starts with one of ${WHEN_ROOTS.join(', ')}`,
            path,
            ...nearestName(root, WHEN_ROOTS),
          },
        ]
      if (root !== 'trigger' || typeof member !== 'string' || EVENT_MEMBERS.includes(member)) return []
      return [
        {
          code: 'unknown_field',
          message: `the trigger of an event has no ${member.slice(0, 100)}: it has ${EVENT_MEMBERS.join(', ')}`,
          path,
          hint: writeInstead(`trigger.record.${member.slice(0, 100)}`, `trigger.${member.slice(0, 100)}`),
        },
      ]
    })
  } catch (error) {
    return [{ code: 'placeholder_syntax', message: (error as Error).message, path }]
  }
}

const scheduleProblems = ({ cron, timezone }: ScheduleTrigger): Problem[] => {
  const syntax = cronProblems(cron)
  return [
    ...syntax.map(
      (message): Problem => ({ code: 'cron_syntax', message: `cron ${message}`, path: '/trigger/cron' }),
    ),
    ...(syntax.length === 0 && neverFires(cron)
      ? [
          {
            code: 'cron_never_fires' as const,
            message: 'cron names only days that do not exist, such as 30 February: it would never fire',
            path: '/trigger/cron',
          },
        ]
      : []),
    ...(isTimezone(timezone)
      ? []
      : [
          {
            code: 'unknown_timezone' as const,
            message: `${timezone.slice(0, 100)} is not a time zone: use an IANA name, such as Europe/Zurich`,
            path: '/trigger/timezone',
          },
        ]),
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
