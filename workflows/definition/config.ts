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

type Issue = z.core.$ZodIssue

function real(issues: readonly Issue[], value: unknown, isUnknown: (text: string) => boolean): ConfigIssue[] {
  return issues.flatMap((issue): ConfigIssue[] => {
    const at = valueAt(value, issue.path)
    if (typeof at === 'string' && isUnknown(at)) return []
    if (issue.code === 'invalid_union') {
      const options = issue.errors.map((option) => real(option, at, isUnknown))
      if (options.some((option) => option.length === 0) && options.length > 0) return []
      // The option that fits best is the one that was meant.
      const meant = closest(options)
      if (meant) return meant.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
    }
    const keys = issue.code === 'unrecognized_keys' ? { keys: issue.keys } : {}
    return [{ path: issue.path, message: explain(issue, at), code: issue.code, ...keys }]
  })
}

/** Where one option alone gets beyond the outermost shape, its issues say more than "invalid input". */
function closest(options: ConfigIssue[][]): ConfigIssue[] | undefined {
  const deeper = options.filter((option) =>
    option.every((issue) => issue.path.length > 0 || issue.code !== 'invalid_type'),
  )
  return deeper.length === 1 ? deeper[0] : undefined
}

function explain(issue: Issue, at: unknown): string {
  if (at === undefined && (issue.code === 'invalid_type' || issue.code === 'invalid_value'))
    return 'is missing'
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
