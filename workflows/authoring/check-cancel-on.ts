import { checkEventNames, checkEventWhen } from '../language/check-events.ts'
import type { Definition } from '../language/definition.ts'
import { references } from '../language/expressions/references.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { type Problem, pointer, write } from '../language/problems.ts'
import { flowText } from '../language/repair.ts'
import { EVENT_ROOT_MEMBERS } from '../nodes/wait-for-event.ts'
import { RECORD_EVENTS } from '../shared/events.ts'
import { cancelSpecs } from './cancel-on.ts'
import { KEY_ROOTS } from './keys.ts'

/** The roots that a `when` of `cancel_on` reads: those of a key, the run, and the event. No node of the run is loaded. */
export const CANCEL_ROOTS = ['event', ...KEY_ROOTS, 'run']

/**
 * Checks the events of `cancel_on`, and that its conditions read the event. `check-references.ts` checks what they read.
 */
export const checkCancelOn = ({ settings }: Pick<Definition, 'settings'>): Problem[] =>
  cancelSpecs(settings).flatMap(({ spec: { event, when }, path }) => [
    ...checkEventNames(event).map((problem) => ({
      ...problem,
      path: `${path}/event${pointer(...problem.path)}`,
    })),
    ...(when === undefined || !hasPlaceholder(when)
      ? []
      : checkEventWhen(when, EVENT_ROOT_MEMBERS)
          // The check of types reports it too.
          .filter(({ code }) => code !== 'unknown_field')
          .map((problem) => ({ ...problem, path: `${path}/when` }))),
    ...constantProblems([event].flat(), when, path),
  ])

/** Warns about a rule that cancels all open runs, or none, whatever the event is about. */
function constantProblems(events: string[], when: string | undefined, path: string): Problem[] {
  const code = 'constant_when'
  if (when === undefined) {
    const event = events.find((name) => RECORD_EVENTS.includes(name))
    if (event === undefined) return []
    return [
      {
        code,
        message: `${event} of any record cancels all open runs of the workflow`,
        path: `${path}/event`,
        hint: 'add `when: "{{ event.record.id == trigger.record.id }}"`',
      },
    ]
  }
  if (!isConstant(when)) return []
  const never = ['', 'false'].includes(when)
  return [
    {
      code,
      message: `when reads neither the event nor the run: ${never ? 'no event cancels a run' : 'it is the same for all of them'}`,
      path: `${path}/when`,
      ...(hasPlaceholder(when) || ['', 'true', 'false'].includes(when)
        ? {}
        : { hint: write(flowText(`{{ ${when.slice(0, 200)} }}`)) }),
    },
  ]
}

function isConstant(when: string): boolean {
  try {
    return references(when).length === 0
  } catch {
    // Reported as placeholder_syntax.
    return false
  }
}
