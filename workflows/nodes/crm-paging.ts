import { z } from 'zod'
import { REMOVE } from '../language/problems.ts'
import { LOOP } from '../shared/limits.ts'
import { LIMITS } from '../shared/run-limits.ts'
import type { Authored, ConfigProblem } from './define.ts'

/** How a search of records reads more than one page. */

/** The records of a search with `all`, unless it says how many. */
export const DEFAULT_MAX = 1_000

export const pagingFields = {
  cursor: z
    .string()
    .max(2_000)
    .nullish()
    .describe(
      '`next_cursor` of the page before, of a search with the same filters, `q`, `sort` and `order`; null or empty: the first page.',
    ),
  all: z
    .boolean()
    .optional()
    .describe(
      `Reads every match, page by page, in place of \`limit\` and \`cursor\`. With more than \`max\`, or more than ${LIMITS.valueBytes / 1024} KiB of records, the node fails.`,
    ),
  max: z
    .int()
    .min(1)
    .max(LOOP.items)
    .optional()
    .describe(`With \`all\`: the most records; default ${DEFAULT_MAX}.`),
}

export const readsPages = (config: Authored): boolean =>
  Object.keys(pagingFields).some((name) => config[name] !== undefined)

/** Settings that say how much to read, and contradict each other. */
export function pagingProblems({ operation, all, max, limit, cursor }: Authored): ConfigProblem[] {
  if (operation !== 'search') return []
  const problem = (key: string, message: string, hint: string): ConfigProblem => ({
    code: 'invalid_value',
    message,
    path: [key],
    hint,
  })
  if (all === true)
    return Object.entries({ limit, cursor }).flatMap(([key, value]) =>
      value === undefined ? [] : [problem(key, `${key} is of one page, and all reads every page`, REMOVE)],
    )
  if (max === undefined || (all !== undefined && all !== false)) return []
  return [problem('max', 'max is only for searches with `all: true`', 'add `all: true`, or write `limit`')]
}
