import { z } from 'zod'
import { isStorable } from '../../../../workflows/shared/storable-text.ts'
import type { Issue } from '../../errors.ts'

/** Names of list parameters, which cannot be field names. */
const LIST_PARAMETERS = [
  'limit',
  'offset',
  'cursor',
  'sort',
  'order',
  'q',
  'match',
  'count',
  'fields',
] as const

export const MAX_FIELDS = 200
const TOO_MANY = `has more than ${MAX_FIELDS} fields`
export const MAX_TEXT = 10_000
const MAX_ITEMS = 200
/** The nesting depth of lists and objects in a field of type json. */
export const MAX_JSON_DEPTH = 10
/** The size of all custom fields of a record, as JSON: every history entry, event and delivery contains them. */
const MAX_BYTES = 65_536

export const NAME = /^[a-z][a-z0-9_]{0,62}$/

export const fieldName = z
  .string()
  .regex(NAME, 'must have at most 63 lower-case letters, digits and underscores, and start with a letter')
  .refine((text) => !(LIST_PARAMETERS as readonly string[]).includes(text), 'is the name of a list parameter')

/** A value that some type of custom field accepts. */
export const storable = z.unknown().superRefine((value, ctx) => {
  const wrong = unstorable(value)
  if (!wrong) return
  const { msg, ...params } = wrong
  ctx.addIssue({ code: 'custom', message: msg, params })
})

/**
 * The schema of `custom_fields` without the definitions of the organization, which `values.ts` applies.
 */
export const customFields = z
  .preprocess(
    (fields, ctx) => {
      // A body can have 100,000 names, too many to check each.
      if (typeof fields !== 'object' || fields === null || Object.keys(fields).length <= MAX_FIELDS)
        return fields
      ctx.addIssue({ code: 'custom', message: TOO_MANY, params: { type: 'too_big' } })
      return z.NEVER
    },
    z.record(fieldName, storable).superRefine((fields, ctx) => {
      // Deep nesting, which `storable` reports, would overflow the stack of the size check.
      if (Object.values(fields).some((value) => nestingOf(value) > MAX_JSON_DEPTH)) return
      for (const { msg, type } of sizeIssues(fields))
        ctx.addIssue({ code: 'custom', message: msg, params: { type } })
    }),
  )
  .meta({
    description:
      'The custom fields by name. A field with a definition (`/v1/custom-fields`) has its type. Numbers are doubles with 15 significant digits.',
  })

/**
 * JSON numbers become doubles: larger integers would silently lose digits. Fractions have the precision of a double,
 * since the parsed number does not show the digits that were written.
 */
const MAX_NUMBER = Number.MAX_SAFE_INTEGER
export const NUMBER_RANGE = `must be between -${MAX_NUMBER} and ${MAX_NUMBER}`
export const isInRange = (number: number): boolean => Math.abs(number) <= MAX_NUMBER

type Unstorable = Pick<Issue, 'msg' | 'type' | 'hint'>

/** The reason why no type of custom field accepts a value. */
function unstorable(value: unknown): Unstorable | undefined {
  if (nestingOf(value) > MAX_JSON_DEPTH)
    return { msg: `must not be nested deeper than ${MAX_JSON_DEPTH} levels`, type: 'too_deep' }
  const visit = (part: unknown): Unstorable | undefined => {
    if (typeof part === 'string') {
      if (part.length > MAX_TEXT) return { msg: `must have at most ${MAX_TEXT} characters`, type: 'too_big' }
      if (!isStorable(part)) return { msg: 'contains NUL or a lone surrogate', type: 'invalid_text' }
    }
    if (typeof part === 'number' && !isInRange(part))
      return {
        msg: NUMBER_RANGE,
        type: 'invalid_number',
        hint: 'send it as a string to keep all digits, unless its definition has the type number',
      }
    if (typeof part !== 'object' || part === null) return undefined
    for (const [key, member] of Object.entries(part)) {
      const wrong = visit(key) ?? visit(member)
      if (wrong) return wrong
    }
  }
  return visit(value)
}

/** The nesting depth of a value: 0 for a text, 1 for a list of texts. Stops at `limit`. */
export function nestingOf(value: unknown, limit = MAX_JSON_DEPTH + 1): number {
  if (typeof value !== 'object' || value === null || limit === 0) return 0
  let deepest = 0
  for (const member of Object.values(value)) {
    deepest = Math.max(deepest, nestingOf(member, limit - 1))
    if (deepest >= limit - 1) break
  }
  return deepest + 1
}

/** Whether a field without a definition may hold a value. */
export const isPlain = (value: unknown): boolean =>
  typeof value !== 'object' ||
  (Array.isArray(value) &&
    value.length <= MAX_ITEMS &&
    value.every((item) => typeof item !== 'object' || item === null))

/** Custom fields as stored: without keys that are null. */
export const withoutNulls = (fields: unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries((fields ?? {}) as object).filter(([, value]) => value !== null))

/** The issues of custom fields that exceed a limit. */
export function sizeIssues(fields: object): Issue[] {
  const loc = ['body', 'custom_fields']
  const issues: Issue[] = []
  if (Object.keys(fields).length > MAX_FIELDS) issues.push({ loc, msg: TOO_MANY, type: 'too_big' })
  if (Buffer.byteLength(JSON.stringify(fields)) > MAX_BYTES)
    issues.push({ loc, msg: `is larger than ${MAX_BYTES / 1_024} KiB`, type: 'too_big' })
  return issues
}
