import { z } from 'zod'
import { type Issue, invalid } from '../errors.ts'

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

const MAX_FIELDS = 200
const MAX_TEXT = 10_000
/** Of all together, as JSON. Every change carries them into the history, the event and each delivery. */
const MAX_BYTES = 65_536

const name = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,62}$/, 'a name has lower-case letters, digits and underscores')
  .refine((text) => !(CONTROLS as readonly string[]).includes(text), 'is the name of a list parameter')
const scalar = z.union([z.string().max(MAX_TEXT), z.number(), z.boolean(), z.null()])

/** What a client may write as `custom_fields`. */
export const customFields = z
  .record(
    name,
    z.union([scalar, z.array(scalar).max(200)], {
      error: 'must be a text, a number, true, false, null or a list of these',
    }),
  )
  .superRefine((fields, ctx) => {
    for (const { msg, type } of tooMuch(fields))
      ctx.addIssue({ code: 'custom', message: msg, params: { type } })
  })

/** What a patch makes of them: merged key by key, a key that is null is gone. Throws `validation_error`. */
export function mergeCustomFields(before: unknown, patch: unknown): Record<string, unknown> {
  const merged = withoutNulls({ ...(before as object), ...(patch as object) })
  const issues = tooMuch(merged)
  if (issues.length > 0) throw invalid(issues)
  return merged
}

/** Custom fields as they are stored: a key that is null is not there. */
export const withoutNulls = (fields: unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries((fields ?? {}) as object).filter(([, value]) => value !== null))

function tooMuch(fields: object): Issue[] {
  const loc = ['body', 'custom_fields']
  const issues: Issue[] = []
  if (Object.keys(fields).length > MAX_FIELDS)
    issues.push({ loc, msg: `has more than ${MAX_FIELDS} fields`, type: 'too_big' })
  if (Buffer.byteLength(JSON.stringify(fields)) > MAX_BYTES)
    issues.push({ loc, msg: `is larger than ${MAX_BYTES / 1_024} KiB`, type: 'too_big' })
  return issues
}
