import { EVENT_NAME, EVENTS, misspelt } from '../shared/events.ts'
import { references, referencesIn } from './expressions/references.ts'
import { hasPlaceholder, parseAuthored, parseTemplate, syntaxProblem } from './expressions/template.ts'
import { meantBy, nearestName, type Problem, write, writeInstead } from './problems.ts'
import { flowText } from './repair.ts'

/** A problem in a part of a value; `path` leads to the part. */
type PartProblem = Pick<Problem, 'code' | 'message' | 'hint'> & { path: PropertyKey[] }

const NAMES = EVENTS.map((event) => event.name)

/** Checks the names of events, one or a list, except for names with placeholders. */
export function checkEventNames(names: unknown): PartProblem[] {
  if (Array.isArray(names))
    return names.flatMap((name, index) =>
      checkEventNames(name).map((problem) => ({ ...problem, path: [index] })),
    )
  if (typeof names !== 'string' || hasPlaceholder(names)) return []
  if (EVENT_NAME.test(names) && misspelt(names) === undefined) return []
  return [
    {
      code: 'unknown_event',
      message: `${names.slice(0, 100)} is not an event name: it must have the form <entity>.<action>`,
      path: [],
      ...nearestName(names, NAMES),
    },
  ]
}

/** The members of the body of a delivery. */
const BODY = ['id', 'event', 'created_at', 'data', 'previous']

/** Checks the condition of an endpoint, which reads the body of a delivery. */
export function checkBodyWhen(when: string): Omit<PartProblem, 'path'>[] {
  if (!hasPlaceholder(when))
    return [
      {
        code: 'placeholder_syntax',
        message: 'has no placeholder, so that it always holds',
        hint: 'write {{ data.… }}',
      },
    ]
  const text = textProblem(when)
  if (text) return [text]
  try {
    return referencesIn(parseAuthored(when).parts).flatMap(({ path: [root] }) => {
      if (typeof root !== 'string' || BODY.includes(root)) return []
      const name = root.slice(0, 100)
      return [
        {
          code: 'unknown_root' as const,
          message: `the body of a delivery has no ${name}: it has ${BODY.join(', ')}`,
          hint: `did you mean data.${name}?`,
        },
      ]
    })
  } catch (error) {
    return [{ code: 'placeholder_syntax', ...syntaxProblem(error) }]
  }
}

/**
 * The problem of a condition that is more than one placeholder, such as `{{ a }} == "b"`: it is a text, which always
 * holds. Undefined if it is one placeholder with blanks around it, or does not parse.
 */
export function textProblem(when: string) {
  const text = when.trim()
  try {
    const { parts } = parseTemplate(text)
    if (parts.length < 2) return undefined
  } catch {
    return undefined
  }
  const whole = text
    .replace(/^[=$]\s*(?=\{\{)/, '')
    .replaceAll(/\{\{-?\s*|\s*-?\}\}/g, '')
    .trim()
  return {
    code: 'placeholder_syntax' as const,
    message: 'the condition is a text with a placeholder in it, so that it always holds',
    hint: write(flowText(`{{ ${whole.slice(0, 500)} }}`)),
  }
}

/** The problem of a `when` without a placeholder. */
export const alwaysHolds = (when: string) => ({
  code: 'placeholder_syntax' as const,
  message: `when has no placeholder, so that it ${when.trim() === '' ? 'never' : 'always'} holds`,
  hint: write(inPlaceholder(when)),
})

/** A condition that lacks its placeholder, with one, in place of the braces of other languages. */
export const inPlaceholder = (when: string): string =>
  flowText(
    `{{ ${when
      .slice(0, 200)
      .replace(/^\s*[=$]?\{([\s\S]*)\}\s*$/, '$1')
      .trim()} }}`,
  )

/** Checks the filter of a wait, except for the values of the run that it reads. `members`: the members of `event`. */
export function checkEventWhen(when: string, members: readonly string[]): Omit<PartProblem, 'path'>[] {
  if (!hasPlaceholder(when)) return [alwaysHolds(when)]
  const text = textProblem(when)
  if (text) return [text]
  try {
    return references(when).flatMap(({ path: [root, member] }) => {
      if (root !== 'event' || member === undefined || members.includes(String(member))) return []
      const name = String(member).slice(0, 100)
      return [
        {
          code: 'unknown_field' as const,
          message: `an event has no ${name}: it has ${members.join(', ')}`,
          hint: writeInstead(`event.${meantBy(name, members) ?? `record.${name}`}`, `event.${name}`),
        },
      ]
    })
  } catch {
    // Reported as placeholder_syntax already.
    return []
  }
}
