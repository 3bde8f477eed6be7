import { RE2JS } from 're2js'
import { PATTERN } from '../../../workflows/limits.ts'
import type { Condition, MappingRule } from '../types.ts'

/** Compiled patterns that are kept: compiling one of 500 characters takes milliseconds. */
const MAX_KEPT = 500
const kept = new Map<string, RE2JS>()

/** A pattern in RE2 syntax. Throws what RE2 says of one that is none. */
export function compiled(pattern: string): RE2JS {
  const found = kept.get(pattern) ?? RE2JS.compile(pattern)
  // The least recently used one is the first.
  kept.delete(pattern)
  kept.set(pattern, found)
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value!)
  return found
}

/** The instructions of a compiled pattern; undefined for what is none. */
export function programSize(pattern: string): number | undefined {
  try {
    return compiled(pattern).programSize()
  } catch {
    return undefined
  }
}

/** The instructions of all patterns of some rules together: their time is this × the length of the texts. */
export const programsOf = (rules: Pick<MappingRule, 'skip_if' | 'when' | 'transforms'>[]): number =>
  rules.flatMap(patternsOf).reduce((sum, pattern) => sum + (programSize(pattern) ?? 0), 0)

const patternsOf = ({ skip_if, when, transforms }: Pick<MappingRule, 'skip_if' | 'when' | 'transforms'>) => [
  ...(skip_if === undefined ? [] : [skip_if]),
  ...(when && isMatching(when) ? [when.to] : []),
  ...transforms.flatMap((transform) => (transform.type === 'replace' ? [transform.pattern] : [])),
]

const isMatching = (condition: Condition): condition is Condition & { is: 'matching' } =>
  condition.is === 'matching'

/** The part of a text that patterns read. */
export const readable = (text: string): string => text.slice(0, PATTERN.text)
