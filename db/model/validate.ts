import { z } from 'zod'
import { nearest } from '../../workflows/shared/nearest.ts'
import { requestMessage } from '../../workflows/shared/plain-words.ts'
import { redactText } from '../../workflows/shared/redact.ts'
import { isSecretName } from '../../workflows/shared/secret-names.ts'
import type { Issue } from './errors.ts'
import { controlMeant } from './lists/control-names.ts'

const MAX_INPUT = 200
/** A lone surrogate, which truncation can leave. */
const SURROGATE = /[\ud800-\udbff]$/

/** The schema with unknown keys refused. A schema that declares its own handling of them is unchanged. */
export function strict(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodObject && schema.def.catchall === undefined ? schema.strict() : schema
}

export type Checked = { value: unknown } | { issues: Issue[] }

/** Parses one part of a request. Reports all issues; with `secret` without the input. */
export function check(
  schema: z.ZodType,
  value: unknown,
  part: 'body' | 'query' | 'path',
  { secret = false } = {},
): Checked {
  const parsed = schema.safeParse(value, { reportInput: true })
  if (parsed.success) return { value: parsed.data }
  const { issues } = parsed.error
  const reported = part === 'query' ? issues.map((issue) => withRawInput(issue, value)) : issues
  const found = toIssues({ issues: reported }, part, (path) => namesAt(schema, path))
  return { issues: secret ? found.map(({ input: _, ...issue }) => issue) : found }
}

/**
 * The issue of a parameter, with the input as the client sent it, not as it was converted: an invalid number becomes
 * NaN, and a repeated parameter a list.
 */
function withRawInput(issue: z.core.$ZodIssue, query: unknown): z.core.$ZodIssue {
  const sent = (query as Record<string, unknown>)[String(issue.path[0])]
  if (Array.isArray(sent) && ['invalid_type', 'invalid_value', 'invalid_union'].includes(issue.code))
    return {
      code: 'custom',
      path: issue.path,
      input: sent,
      params: { type: 'repeated' },
      message: `was sent ${sent.length} times, but accepts one value`,
    }
  return typeof issue.input === 'number' ? ({ ...issue, input: sent } as z.core.$ZodIssue) : issue
}

/** zod's issues in the framework validation shape. The echoed `input` is short and never a secret. */
export function toIssues(
  { issues }: Pick<z.ZodError, 'issues'>,
  part: string,
  namesAt: (path: readonly PropertyKey[]) => readonly string[] = () => [],
): Issue[] {
  return issues.flatMap((issue): Issue[] => {
    const loc = [part, ...issue.path.map((step) => (typeof step === 'number' ? step : String(step)))]
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key, index) => {
        const meant = index < MAX_HINTS ? nameMeant(part, key, namesAt(issue.path)) : undefined
        return {
          loc: [...loc, key],
          msg: part === 'query' ? 'unknown parameter' : 'unknown field',
          type: 'unrecognized_key',
          ...(meant !== undefined && { hint: `did you mean ${meant}?` }),
        }
      })
    if ((issue.code === 'invalid_type' || issue.code === 'invalid_value') && issue.input === undefined)
      return [{ loc, msg: 'required', type: 'missing' }]
    // The message of an invalid key is generic; its inner issues have the reason.
    const msg =
      issue.code === 'invalid_key' ? issue.issues.map(requestMessage).join(', ') : requestMessage(issue)
    const type = issue.code === 'custom' ? String(issue.params?.type ?? 'invalid') : issue.code
    const hint = issue.code === 'custom' && issue.params?.hint ? { hint: String(issue.params.hint) } : {}
    return [{ loc, msg, type, ...hint, ...echo(loc, issue.input) }]
  })
}

/** The name that an unknown one means, in the query of a list also by the words of other APIs. */
const nameMeant = (part: string, written: string, names: readonly string[]): string | undefined =>
  (part === 'query' ? controlMeant(written, (name) => names.includes(name)) : undefined) ??
  nearest(written, names)

/** The most unknown fields with a hint: a body can have 100,000 of them. */
const MAX_HINTS = 20

/** The names of the members of the mapping at a path; none if the schema there is no mapping. */
function namesAt(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const at = path.reduce<z.ZodType | undefined>((outer, key) => {
    const inner = outer && unwrapped(outer)
    if (inner instanceof z.ZodObject) return inner.shape[String(key)]
    return inner instanceof z.ZodArray ? (inner.element as z.ZodType) : undefined
  }, schema)
  const found = at && unwrapped(at)
  return found instanceof z.ZodObject ? Object.keys(found.shape) : []
}

function unwrapped(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault
    ? unwrapped(schema.unwrap() as z.ZodType)
    : schema
}

/** Objects and arrays are not echoed: they can contain secrets. */
function echo(loc: Issue['loc'], input: unknown): { input?: unknown } {
  if (input === undefined || typeof input === 'object' || loc.some(isSecretPlace)) return {}
  return {
    input: typeof input === 'string' ? redactText(input).slice(0, MAX_INPUT).replace(SURROGATE, '') : input,
  }
}

/** A header of any name can contain a credential. */
const isSecretPlace = (step: string | number) => step === 'headers' || isSecretName(String(step))
