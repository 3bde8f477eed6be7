import type { z } from 'zod'
import { KINDS, plainMessage } from '../shared/plain-words.ts'
import { hasPlaceholder } from './expressions/template.ts'

/** An issue of a value that does not match its schema. */
export interface ConfigIssue {
  path: PropertyKey[]
  message: string
  code: string
  /** The keys of an issue `unrecognized_keys`. */
  keys?: string[]
  /** The allowed values, if there is a list of them. */
  allowed?: string[]
}

/**
 * Checks a value against a schema. The value of a placeholder is unknown until it is rendered, so issues at or inside a
 * placeholder are dropped.
 */
export function checkConfig(schema: z.ZodType, value: unknown): ConfigIssue[] {
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : real(parsed.error.issues, value, hasPlaceholder)
}

/** Checks a value that is already rendered, or never is: `{{` is plain text in it. */
export function checkShape(schema: z.ZodType, value: unknown): ConfigIssue[] {
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : real(parsed.error.issues, value, () => false)
}

/** The messages for an issue of a node's config, each with its path in the config. */
export function describeIssue(issue: ConfigIssue, type: string, prefix: string[] = []) {
  const { path, message, keys } = issue
  if (!keys) return [{ message: [[...prefix, ...path].join('.'), message].filter(Boolean).join(' '), path }]
  return keys.map((key) => ({
    message: `${type} has no setting ${[...path, key].join('.')}`,
    path: [...path, key],
    atKey: true,
  }))
}

type Issue = z.core.$ZodIssue

function real(issues: readonly Issue[], value: unknown, isUnknown: (text: string) => boolean): ConfigIssue[] {
  // Where zod expects a list, it reports the length of a text too.
  const mistyped = new Set(
    issues.flatMap(({ code, path }) => (code === 'invalid_type' ? path.join('/') : [])),
  )
  return issues.flatMap((issue): ConfigIssue[] => {
    if ((issue.code === 'too_small' || issue.code === 'too_big') && mistyped.has(issue.path.join('/')))
      return []
    const at = valueAt(value, issue.path)
    if (typeof at === 'string' && isUnknown(at)) return []
    if (issue.code === 'invalid_union') {
      const options = issue.errors.map((option) => real(option, at, isUnknown))
      if (options.some((option) => option.length === 0) && options.length > 0) return []
      // Report the option that fits best.
      const meant = closest(options, at)
      if (meant) return meant.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
    }
    const keys = issue.code === 'unrecognized_keys' ? { keys: issue.keys } : {}
    const allowed = allowedBy(issue)
    return [
      {
        path: issue.path,
        message: explain(issue, at),
        code: issue.code,
        ...keys,
        ...(allowed ? { allowed } : {}),
      },
    ]
  })
}

function allowedBy(issue: Issue): string[] | undefined {
  if (issue.code === 'invalid_value') return issue.values.map(String)
  return issue.code === 'invalid_union' && 'options' in issue && Array.isArray(issue.options)
    ? issue.options.map(String)
    : undefined
}

/** The issues of the only option whose outermost type fits; more specific than "invalid input". */
function closest(options: ConfigIssue[][], at: unknown): ConfigIssue[] | undefined {
  // An object is never a value of an enum.
  const outermost =
    typeof at === 'object' && at !== null ? ['invalid_type', 'invalid_value'] : ['invalid_type']
  const deeper = options.filter((option) =>
    option.every((issue) => issue.path.length > 0 || !outermost.includes(issue.code)),
  )
  return deeper.length === 1 ? deeper[0] : undefined
}

function explain(issue: Issue, at: unknown): string {
  const names = issue.code === 'invalid_union' && 'options' in issue ? issue.options : undefined
  if (at === undefined && (issue.code === 'invalid_type' || issue.code === 'invalid_value' || names))
    return 'is missing'
  if (names) return `must be one of ${names.join(', ')}`
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => message).join(', ')
  // The message of a union that has no own one.
  if (issue.message === 'Invalid input') return `cannot be ${kindOf(at)}`
  const wanted = issue.code === 'invalid_type' ? KINDS[issue.expected] : undefined
  return wanted === undefined
    ? (plainMessage(issue) ?? issue.message)
    : `must be ${wanted}, but is ${kindOf(at)}`
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a mapping' : (JSON.stringify(value)?.slice(0, 100) ?? 'empty')
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value
  for (const key of path) {
    if (typeof at === 'string') return at
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Record<PropertyKey, unknown>)[key]
  }
  return at
}
