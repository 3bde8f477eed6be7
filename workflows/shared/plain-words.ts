import type { z } from 'zod'

/** The messages of zod in plain words, for authors of workflows and clients of the API. */

/** Types in words of YAML and JSON. */
export const KINDS: Record<string, string> = {
  record: 'a mapping',
  object: 'a mapping',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  null: 'empty',
  undefined: 'empty',
}

/** The same for JSON. */
const JSON_KINDS: Record<string, string> = { ...KINDS, record: 'an object', object: 'an object' }

/** Allowed values that a message names. */
const MAX_NAMED = 30

/** The message of an issue in a request: what is expected, or the schema's own message. */
export function requestMessage(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value' && OWN.test(issue.message)) return `must be ${oneOf(issue.values)}`
  if (!issue.message.startsWith('Invalid input')) return plainMessage(issue) ?? issue.message
  if (issue.code === 'invalid_union') return 'has none of the forms that it can have'
  const kind = issue.code === 'invalid_type' ? JSON_KINDS[issue.expected] : undefined
  return kind ? `must be ${kind}` : issue.message
}

function oneOf(values: readonly unknown[]): string {
  if (values.length === 1) return String(values[0])
  const named = values.slice(0, MAX_NAMED).join(', ')
  return `one of ${named}${values.length > MAX_NAMED ? `, … (${values.length} in all)` : ''}`
}

const FORMATS: Record<string, string> = {
  email: 'an email address, such as ada@example.com',
  uuid: 'an id (UUID), such as 019a0000-0000-7000-8000-000000000001',
  url: 'a URL, such as https://example.com/path',
  datetime: 'a time, such as 2026-03-01T09:30:00Z',
  date: 'a date, such as 2026-03-01',
}

const UNITS: Record<string, [one: string, many: string]> = {
  string: ['character', 'characters'],
  array: ['item', 'items'],
  set: ['item', 'items'],
  map: ['entry', 'entries'],
}

/** What is expected; undefined if the schema has its own message, or the caller has a better one. */
export function plainMessage(issue: z.core.$ZodIssue): string | undefined {
  switch (issue.code) {
    case 'too_small':
    case 'too_big': {
      if (!OWN.test(issue.message)) return undefined
      const [limit, least, beyond] =
        issue.code === 'too_small'
          ? [issue.minimum, 'at least', 'more than']
          : [issue.maximum, 'at most', 'less than']
      const bound = issue.inclusive === false ? beyond : least
      const unit = UNITS[issue.origin]
      if (!unit) return `must be ${bound} ${limit}`
      if (issue.code === 'too_small' && Number(limit) === 1 && issue.inclusive !== false)
        return 'must not be empty'
      return `must have ${bound} ${limit} ${Number(limit) === 1 ? unit[0] : unit[1]}`
    }
    case 'invalid_format':
      return OWN.test(issue.message)
        ? `must be ${FORMATS[issue.format] ?? `a valid ${issue.format}`}`
        : undefined
    case 'not_multiple_of':
      return OWN.test(issue.message) ? `must be a multiple of ${issue.divisor}` : undefined
    default:
      return undefined
  }
}

/** How zod's own messages begin. */
const OWN = /^(Invalid|Too)\b/
