import type { z } from 'zod'
import { hasPlaceholder } from '../expressions/template.ts'

/** One thing wrong with a value, where it is not a placeholder's fault. */
export interface ConfigIssue {
  path: PropertyKey[]
  message: string
  code: string
  /** Of `unrecognized_keys`. */
  keys?: string[]
}

/**
 * Checks a value against a schema with placeholders taken for unknown: what a placeholder will become fits or not
 * when it is rendered, so an issue that lies at or inside one is none.
 */
export function checkConfig(schema: z.ZodType, value: unknown): ConfigIssue[] {
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : real(parsed.error.issues, value, hasPlaceholder)
}

/** Checks what is never rendered, the spec around the configs: there a placeholder is a text like any other. */
export function checkShape(schema: z.ZodType, value: unknown): ConfigIssue[] {
  const parsed = schema.safeParse(value)
  return parsed.success ? [] : real(parsed.error.issues, value, () => false)
}

/** Each thing that is wrong with a node's config in words, and where in the config it is. */
export function saidOf(issue: ConfigIssue, type: string, of: string[] = []) {
  const { path, message, keys } = issue
  if (!keys) return [{ message: [[...of, ...path].join('.'), message].filter(Boolean).join(' '), path }]
  return keys.map((key) => ({
    message: `${type} has no setting ${[...path, key].join('.')}`,
    path: [...path, key],
    atKey: true,
  }))
}

type Issue = z.core.$ZodIssue

function real(issues: readonly Issue[], value: unknown, isUnknown: (text: string) => boolean): ConfigIssue[] {
  return issues.flatMap((issue): ConfigIssue[] => {
    const at = valueAt(value, issue.path)
    if (typeof at === 'string' && isUnknown(at)) return []
    if (issue.code === 'invalid_union') {
      const options = issue.errors.map((option) => real(option, at, isUnknown))
      if (options.some((option) => option.length === 0) && options.length > 0) return []
      // The option that fits best is the one that was meant.
      const meant = closest(options, at)
      if (meant) return meant.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
    }
    const keys = issue.code === 'unrecognized_keys' ? { keys: issue.keys } : {}
    return [{ path: issue.path, message: explain(issue, at), code: issue.code, ...keys }]
  })
}

/** Where one option alone gets beyond the outermost shape, its issues say more than "invalid input". */
function closest(options: ConfigIssue[][], at: unknown): ConfigIssue[] | undefined {
  // An object is none of some words, whatever is in it.
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
  if (issue.code === 'invalid_key') return issue.issues.map(({ message }) => message).join(', ')
  return issue.message
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
