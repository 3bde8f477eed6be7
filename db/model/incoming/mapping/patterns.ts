import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import { PATTERN } from '../../../../workflows/shared/limits.ts'
import type { Condition, MappingRule } from '../types.ts'

/** Compiled patterns: compiling one of 500 characters takes milliseconds. */
const kept = new LRUCache<string, RE2JS>({ max: 500 })

/** Compiles a pattern in RE2 syntax. Throws RE2's syntax error. */
export function compiled(pattern: string): RE2JS {
  const known = kept.get(pattern)
  if (known) return known
  const made = RE2JS.compile(pattern)
  kept.set(pattern, made)
  return made
}

/** The number of instructions of a compiled pattern; undefined if the pattern is invalid. */
export function programSize(pattern: string): number | undefined {
  try {
    return compiled(pattern).programSize()
  } catch {
    return undefined
  }
}

/** The instructions of all patterns of some rules together: their time is this × the length of the texts. */
export const programsOf = (rules: WithPatterns[]): number =>
  rules.flatMap(patternsOf).reduce((sum, pattern) => sum + (programSize(pattern) ?? 0), 0)

/** A rule of a mapping, or a listener. */
type WithPatterns = Partial<Pick<MappingRule, 'skip_if' | 'when' | 'transforms'>>

const patternsOf = ({ skip_if, when, transforms = [] }: WithPatterns) => [
  ...(skip_if === undefined ? [] : [skip_if]),
  ...(when && isMatching(when) ? [when.to] : []),
  ...transforms.flatMap((transform) => (transform.type === 'replace' ? [transform.pattern] : [])),
]

const isMatching = (condition: Condition): condition is Condition & { is: 'matching' } =>
  condition.is === 'matching'

/** The part of a text that patterns read. */
export const readable = (text: string): string => text.slice(0, PATTERN.text)
