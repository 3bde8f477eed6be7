import { z } from 'zod'
import { customName } from '../../db/model/records/filters.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import type { Selection } from '../../db/records/selection.ts'
import { recordQuery } from './record-query.ts'

/** The parameters of a list in a JSON body, which exports, views and bulk operations keep. */

/** Parameters of a list that a selection refuses: they belong to a page. */
const PAGING = ['limit', 'offset', 'cursor', 'count', 'fields', 'expand', 'deleted']

/** A parameter is text in a URL; in JSON it can also be a number or boolean. */
const value = z.union([z.string().max(10_000), z.number(), z.boolean()])
const notFor = (what: string) => `is not supported by ${what}`

const parameterOf = (what: string) =>
  z.union([value, z.array(value)], {
    error: ({ path }) =>
      PAGING.includes(String(path?.at(-1)))
        ? notFor(what)
        : 'must be a string, a number, a boolean or an array of these',
  })

export type StoredQuery = Record<string, string | string[]>
type GivenQuery = Record<string, z.output<typeof value> | z.output<typeof value>[]>

/** @param what names the resource in errors, in the plural. */
export const storedQuery = (what: string) => z.record(z.string().max(200), parameterOf(what))

/** The parameters as texts. */
export const asTexts = (given: GivenQuery): StoredQuery =>
  Object.fromEntries(
    Object.entries(given).map(([name, one]) => [name, Array.isArray(one) ? one.map(String) : String(one)]),
  )

/** Parses the parameters of a list of the kind. Reports their issues below `query`. @returns undefined with issues. */
export function parseSelection(
  entity: KindName,
  query: StoredQuery,
  what: string,
  ctx: z.RefinementCtx,
): Selection | undefined {
  for (const name of Object.keys(query))
    if (PAGING.includes(name))
      ctx.addIssue({ code: 'custom', path: ['query', name], message: notFor(what), input: query[name] })
  const parsed = recordQuery(entity).safeParse(query)
  for (const issue of parsed.error?.issues ?? []) ctx.addIssue({ ...issue, path: ['query', ...issue.path] })
  if (!parsed.success) return undefined
  const { sort, order, q, match, filters, time_zone } = parsed.data
  return { sort, order, q, match, filters, time_zone }
}

/** Reports the names that are no fields among `known`, below `fields`. */
export function checkFields(names: readonly string[] | null, known: string[], ctx: z.RefinementCtx): void {
  for (const [i, name] of (names ?? []).entries())
    if (!known.includes(name) && customName(name) === undefined)
      ctx.addIssue({
        code: 'custom',
        path: ['fields', i],
        message: 'is not a field',
        params: { type: 'invalid_value', hint: `fields are ${known.join(', ')}, custom_fields.<name>` },
      })
}
