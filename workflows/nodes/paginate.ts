import { z } from 'zod'
import { textProblem } from '../language/check-events.ts'
import { hasPlaceholder } from '../language/expressions/template.ts'
import { meantBy, write } from '../language/problems.ts'
import { listOf, memberType, typeOfSchema, UNKNOWN, type ValueType } from '../language/value-types.ts'
import { isObject } from '../shared/is-object.ts'
import { LIST, PAGES } from '../shared/limits.ts'
import type { Authored, ConfigProblem } from './define.ts'

/** `paginate` of an api_request: how its pages follow each other, and how many there may be. */

const ANSWER_PATH = /^(body|headers)(\.[^.\s]+)*$/
const answerPath = z
  .string()
  .max(200)
  .regex(ANSWER_PATH, 'must be a path in the answer, which begins with body or headers: `body.data`')
/** The greatest number of a page, or offset. */
const MOST_NUMBER = 1e12
const parameter = z.string().min(1).max(200)

export const paginate = z.strictObject({
  link_header: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe('Follow the Link header with this `rel`: `next`. One of the four ways.'),
  next: answerPath
    .optional()
    .describe('Follow the link at this path in the answer, until it is absent or null: `body.links.next`.'),
  cursor: z
    .strictObject({ path: answerPath, parameter })
    .optional()
    .describe(
      'Send the value at `path` as the query parameter `parameter`, until it is absent, null or empty: `{path: body.next_cursor, parameter: cursor}`.',
    ),
  page: z
    .strictObject({
      parameter: parameter.default('page'),
      from: z.int().min(0).max(MOST_NUMBER).default(1),
      step: z.int().min(1).max(MOST_NUMBER).default(1),
    })
    .optional()
    .describe(
      'Send the number of the page as a query parameter, until a page has no items: `{parameter: page, from: 1}`. An offset has `step`, the size of a page.',
    ),
  items: answerPath
    .default('body')
    .describe('The path of the list of items in each answer: `body.data`. Default: the body is the list.'),
  max_pages: z.int().min(1).max(PAGES.most).default(PAGES.default).describe('The most pages.'),
  max: z.int().min(1).max(LIST.items).default(LIST.items).describe('The most items.'),
  on_limit: z
    .enum(['fail', 'stop'])
    .default('fail')
    .describe(
      'If there is more than `max_pages`, `max` or 1 MiB of items. `fail`: the node fails with `page_limit`. `stop`: its output has what fits, with `ended_by: limit`.',
    ),
})

export type Paginate = z.output<typeof paginate>

/** The output of a node that reads pages. */
export const pagesRead = z.strictObject({
  items: z.array(z.unknown()).describe('With `paginate`: the items of all pages, in order.'),
  pages: z.int().describe('The pages that were read.'),
  ended_by: z.enum(['end', 'until', 'limit']),
})

const WAYS = ['link_header', 'next', 'cursor', 'page'] as const
const USE_ONE =
  'write one of `link_header: next`, `next: body.links.next`, `cursor: {path: body.next_cursor, parameter: cursor}`, `page: {parameter: page}`'

/** The problems of `paginate` and `until` with the settings beside them. */
export function paginateProblems(
  { paginate: given, until, method, response, body }: Authored,
  answer: ValueType,
): ConfigProblem[] {
  const problem = (path: PropertyKey[], message: string, hint: string): ConfigProblem => ({
    code: 'invalid_value',
    message,
    path,
    hint,
  })
  if (given === undefined)
    return until === undefined
      ? []
      : [problem(['until'], 'until ends the pages of `paginate`, which is missing', 'add `paginate`')]
  const found: ConfigProblem[] = []
  if (method !== undefined && method !== 'GET')
    found.push(
      problem(
        ['method'],
        'paginate reads with GET only: after a crash a page is read again',
        'write `method: GET`, or repeat the request in a `repeat`, which makes each call once',
      ),
    )
  if (response === 'file')
    found.push(problem(['response'], 'a file has no pages', 'remove `response` or `paginate`'))
  if (body !== undefined)
    found.push(problem(['body'], 'paginate sends no body', 'send the values as `query`'))
  const text = typeof until === 'string' && hasPlaceholder(until) ? textProblem(until) : undefined
  if (text) found.push({ ...text, path: ['until'] })
  if (typeof until === 'string' && !hasPlaceholder(until))
    found.push(
      problem(
        ['until'],
        'until has no placeholder: it is the same for each page',
        'write a condition about the page: `"{{ page.body.has_more == false }}"`',
      ),
    )
  if (!isObject(given)) return found
  const ways = WAYS.filter((way) => given[way] !== undefined)
  if (ways.length !== 1)
    found.push(
      problem(
        ['paginate'],
        ways.length === 0
          ? 'paginate does not say how the pages follow each other'
          : `paginate has ${ways.join(' and ')}: it takes one`,
        USE_ONE,
      ),
    )
  return [...found, ...pathProblems(given, answer)]
}

/** A path of which the schema of the body says that it does not exist. */
function pathProblems({ next, cursor, items }: Record<string, unknown>, answer: ValueType): ConfigProblem[] {
  const named: [PropertyKey[], unknown][] = [
    [['next'], next],
    [['cursor', 'path'], isObject(cursor) ? cursor.path : undefined],
    [['items'], items],
  ]
  return named.flatMap(([path, written]): ConfigProblem[] => {
    if (typeof written !== 'string' || !ANSWER_PATH.test(written)) return []
    const read = typeAt(answer, written)
    if ('type' in read) return []
    return [
      {
        code: 'unknown_field',
        message: `the answer has no ${written.slice(0, 100)}${read.names.length > 0 ? `: ${read.at} has ${read.names.slice(0, 20).join(', ')}` : ''}`,
        path: ['paginate', ...path],
        ...(read.names.length > 0 && { hint: () => pathHint(written, read) }),
      },
    ]
  })
}

function pathHint(written: string, { at, names }: { at: string; names: readonly string[] }): string {
  const before = at === '' ? [] : at.split('.')
  const [key = '', ...rest] = written.split('.').slice(before.length)
  const meant = meantBy(key, names)
  return meant === undefined
    ? `one of ${names.slice(0, 20).join(', ')}`
    : write([...before, meant, ...rest].join('.'))
}

function typeAt(
  answer: ValueType,
  path: string,
): { type: ValueType } | { at: string; names: readonly string[] } {
  let type = answer
  const keys = path.split('.')
  for (const [index, key] of keys.entries()) {
    const member = memberType(type, key)
    if (!('type' in member)) return { at: keys.slice(0, index).join('.'), names: member.names }
    type = member.type
  }
  return { type }
}

/** The type of the output of a node that reads pages, whose answers have the type `answer`. */
export function typeOfPages(given: unknown, answer: ValueType): ValueType {
  const { properties, ...type } = typeOfSchema(pagesRead)
  const path = isObject(given) ? (given.items ?? 'body') : undefined
  const read = typeof path === 'string' && ANSWER_PATH.test(path) ? typeAt(answer, path) : { type: UNKNOWN }
  const items = 'type' in read && isObject(read.type.items) ? (read.type.items as ValueType) : UNKNOWN
  return { ...type, properties: { ...properties, items: listOf(items) } }
}
