import { z } from 'zod'
import { OMIT } from '../language/expressions/omitted.ts'
import { REMOVE } from '../language/problems.ts'
import { isObject } from '../shared/is-object.ts'
import { LOOP } from '../shared/limits.ts'
import { LIMITS } from '../shared/run-limits.ts'
import type { Authored, ConfigProblem, FirstOnly } from './define.ts'

/** How a search of records reads more than one page. */

/** The records or files of the longest page. */
export const LONGEST_PAGE = 200

/** The records of a search with `all`, unless it says how many. */
export const DEFAULT_MAX = 1_000

/** The records or files of one page, unless `limit` says how many. */
export const DEFAULT_PAGE = 50

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

/** What is left out of a read that does not say how much it wants. */
export function firstOnly({ operation, ...config }: Authored): FirstOnly | undefined {
  const all = ALL[String(operation)]
  if (all === undefined || MUCH.some((name) => config[name] !== undefined)) return undefined
  if (isObject(config.filters) && Object.entries(config.filters).some(findsFew)) return undefined
  return { list: 'data', most: DEFAULT_PAGE, others: ['has_more', 'next_cursor'], all }
}

/** The setting by which an operation reads more than a page, or the longest one. */
const ALL: Record<string, string> = {
  search: 'all: true',
  list_related: `limit: ${LONGEST_PAGE}`,
  list_files: `limit: ${LONGEST_PAGE}`,
}

/** Whether a condition is met by less than a page of records, and cannot be left out. */
const findsFew = ([key, value]: [string, unknown]): boolean =>
  /^(id|email|external_id)(\[eq\])?$/.test(key) && !String(value).includes(OMIT)

const MUCH = ['limit', 'cursor', 'all', 'max']

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
  const isLimit = typeof max === 'number' && max <= LONGEST_PAGE && limit === undefined
  return [
    problem(
      'max',
      'max is only for searches with `all: true`',
      isLimit ? `replace it by \`limit: ${max}\`` : 'add `all: true`, or write `limit`',
    ),
  ]
}
