import { z } from 'zod'
import { isStorable } from '../../../../workflows/storable-text.ts'
import type { Issue } from '../../../errors.ts'

/** Names that are query parameters of lists, and can therefore not be fields. */
export const CONTROLS = [
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
/** How deep lists and objects may be in each other in a field of type json. */
export const MAX_JSON_DEPTH = 10
/** Of all together, as JSON. Every change carries them into the history, the event and each delivery. */
const MAX_BYTES = 65_536

export const NAME = /^[a-z][a-z0-9_]{0,62}$/

export const fieldName = z
  .string()
  .regex(NAME, 'a name has lower-case letters, digits and underscores, at most 63, and starts with a letter')
  .refine((text) => !(CONTROLS as readonly string[]).includes(text), 'is the name of a list parameter')

/** What may be in a custom field of some type. */
export const storable = z.unknown().superRefine((value, ctx) => {
  const wrong = unstorable(value)
  if (!wrong) return
  const { msg, ...params } = wrong
  ctx.addIssue({ code: 'custom', message: msg, params })
})

/**
 * What a client may write as `custom_fields`, as far as it can be said without the definitions of the organization;
 * `values.ts` says the rest.
 */
export const customFields = z
  .preprocess(
    (fields, ctx) => {
      // Each name would be looked at, and a body has room for a hundred thousand.
      if (typeof fields !== 'object' || fields === null || Object.keys(fields).length <= MAX_FIELDS)
        return fields
      ctx.addIssue({ code: 'custom', message: TOO_MANY, params: { type: 'too_big' } })
      return z.NEVER
    },
    z.record(fieldName, storable).superRefine((fields, ctx) => {
      // To measure what is nested without end would overflow the stack; that it is too deep has been said.
      if (Object.values(fields).some((value) => nestingOf(value) > MAX_JSON_DEPTH)) return
      for (const { msg, type } of tooMuch(fields))
        ctx.addIssue({ code: 'custom', message: msg, params: { type } })
    }),
  )
  .meta({
    description:
      'The custom fields by name. A field with a definition (`/v1/custom-fields`) has its type. Numbers are doubles with 15 significant digits.',
  })

/**
 * Beyond it whole numbers would lose digits without a word: of JSON a double is made. Of a fraction it keeps what a
 * double keeps: 0.30000000000000004 is a number like any other, and what was written cannot be told from it.
 */
const MAX_NUMBER = Number.MAX_SAFE_INTEGER
export const NUMBER_RANGE = `must be between -${MAX_NUMBER} and ${MAX_NUMBER}`
export const isInRange = (number: number): boolean => Math.abs(number) <= MAX_NUMBER

type Unstorable = Pick<Issue, 'msg' | 'type' | 'hint'>

/** Why a value can be in no custom field of any type. */
function unstorable(value: unknown): Unstorable | undefined {
  if (nestingOf(value) > MAX_JSON_DEPTH)
    return { msg: `must not be nested deeper than ${MAX_JSON_DEPTH} levels`, type: 'too_deep' }
  const visit = (part: unknown): Unstorable | undefined => {
    if (typeof part === 'string') {
      if (part.length > MAX_TEXT) return { msg: `must have at most ${MAX_TEXT} characters`, type: 'too_big' }
      if (!isStorable(part)) return { msg: 'contains NUL or half a surrogate pair', type: 'invalid_text' }
    }
    if (typeof part === 'number' && !isInRange(part))
      return {
        msg: NUMBER_RANGE,
        type: 'invalid_number',
        hint: 'send it as a string, which keeps all of its digits, unless its definition says number',
      }
    if (typeof part !== 'object' || part === null) return undefined
    for (const [key, member] of Object.entries(part)) {
      const wrong = visit(key) ?? visit(member)
      if (wrong) return wrong
    }
  }
  return visit(value)
}

/** How deep a value is nested: 0 for a text, 1 for a list of texts. Looks no deeper than what is refused anyway. */
export function nestingOf(value: unknown, limit = MAX_JSON_DEPTH + 1): number {
  if (typeof value !== 'object' || value === null || limit === 0) return 0
  let deepest = 0
  for (const member of Object.values(value)) {
    deepest = Math.max(deepest, nestingOf(member, limit - 1))
    if (deepest >= limit - 1) break
  }
  return deepest + 1
}

/** What a field without a definition may hold. */
export const isPlain = (value: unknown): boolean =>
  typeof value !== 'object' ||
  (Array.isArray(value) &&
    value.length <= MAX_ITEMS &&
    value.every((item) => typeof item !== 'object' || item === null))

/** Custom fields as they are stored: a key that is null is not there. */
export const withoutNulls = (fields: unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries((fields ?? {}) as object).filter(([, value]) => value !== null))

export function tooMuch(fields: object): Issue[] {
  const loc = ['body', 'custom_fields']
  const issues: Issue[] = []
  if (Object.keys(fields).length > MAX_FIELDS) issues.push({ loc, msg: TOO_MANY, type: 'too_big' })
  if (Buffer.byteLength(JSON.stringify(fields)) > MAX_BYTES)
    issues.push({ loc, msg: `is larger than ${MAX_BYTES / 1_024} KiB`, type: 'too_big' })
  return issues
}
