import type { Finding } from './types.ts'

/** Everything that validation can find. The first group refuses a workflow, the second does not. */
export type ErrorCode =
  | 'yaml_syntax'
  | 'yaml_limit'
  | 'yaml_alias'
  | 'yaml_tag'
  | 'yaml_value'
  | 'duplicate_key'
  | 'schema'
  | 'unknown_key'
  | 'missing_key'
  | 'unknown_node_type'
  | 'invalid_config'
  | 'unknown_handle'
  | 'missing_target'
  | 'unreachable_node'
  | 'cycle'
  | 'duplicate_node'
  | 'placeholder_syntax'
  | 'unknown_root'
  | 'root_not_available'
  | 'unknown_node'
  | 'not_upstream'
  | 'unknown_input'
  | 'unknown_field'
  | 'unknown_entity'
  | 'unknown_event'
  | 'type_mismatch'
  | 'cron_syntax'
  | 'unknown_timezone'
  | 'trigger_not_available'

export type WarningCode =
  | 'maybe_not_upstream'
  | 'side_effect_without_retry'
  | 'unused_output'
  | 'not_applicable'

/** A finding before it is known where in the text it is. */
export interface Problem extends Omit<Finding, 'code' | 'line' | 'column' | 'source'> {
  code: ErrorCode | WarningCode
  /** Points at the key rather than at its value. */
  atKey?: boolean
}

const WARNINGS: ReadonlySet<string> = new Set<WarningCode>([
  'maybe_not_upstream',
  'side_effect_without_retry',
  'unused_output',
  'not_applicable',
])

export const isWarning = (code: Problem['code']) => WARNINGS.has(code)

/** A JSON Pointer. */
export const pointer = (...segments: PropertyKey[]): string =>
  segments.map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')

/**
 * The name closest to what was written, where it is close enough to be a slip: `within` so many letters, of three one.
 */
export function nearest(
  written: string,
  names: Iterable<string>,
  within = Math.round(written.length / 3),
): string | undefined {
  if (written.length > 100) return undefined
  let best: string | undefined
  let least = within + 1
  for (const name of names) {
    const away = distance(written.toLowerCase(), name.toLowerCase())
    if (away < least) [best, least] = [name, away]
  }
  return best
}

/** A hint where there is a nearest name: spread it into a problem. */
export function didYouMean(written: string, names: Iterable<string>): { hint?: string } {
  const name = nearest(written, names)
  return name === undefined ? {} : { hint: `did you mean ${name}?` }
}

/** Levenshtein's, with two letters that changed places as one. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  let before: number[] = []
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swapped = j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Infinity
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, replaced, swapped))
    }
    before = row
    row = next
  }
  return row[b.length]!
}
