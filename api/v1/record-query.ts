import { z } from 'zod'
import type { Issue } from '../../db/errors.ts'
import { type Filter, parseFilter, sortable, sortNames } from '../../db/records/filters.ts'
import type { EntityName, Kind } from '../../db/records/kind.ts'
import { entities } from '../../db/records/kinds/index.ts'
import type { ListQuery } from '../../db/records/list.ts'
import { recordSchema } from '../../db/records/schemas.ts'
import { count, order, pageControls } from '../http/list-query.ts'
import { filterShapes } from './filter-shapes.ts'

export interface RecordQuery extends Omit<ListQuery, 'offset'> {
  offset?: number | undefined
  /** The fields to answer with; undefined for all. */
  fields: string[] | undefined
}

const MAX_FILTERS = 50

/** The query parameters of a list of one kind: the controls, and a filter by every field. */
export function recordQuery(entity: EntityName): z.ZodType<RecordQuery> {
  const kind = entities[entity]
  const shown = Object.keys(recordSchema(entity).shape)
  const controls = {
    ...pageControls,
    sort: z
      .string()
      .default('created_at')
      .refine((field) => sortable(kind, field) !== undefined, {
        error: 'is not a field to sort by',
        params: { hint: `fields to sort by are ${sortNames(kind).join(', ')}` },
      })
      .describe('A field, or custom_fields.<name>.'),
    order,
    q: z
      .string()
      .max(500)
      .optional()
      .describe('Free text: every word must occur somewhere in the record, custom fields included.'),
    match: z.enum(['all', 'any']).default('all').describe('Whether all filters must hold, or any.'),
    count,
    fields: z
      .string()
      .transform((list) => list.split(',').map((name) => name.trim()))
      .refine(
        (names) => names.every((name) => shown.includes(name)),
        `has an unknown field; fields are ${shown.join(', ')}`,
      )
      .optional()
      .describe('The fields to answer with, separated by commas; id and object are always there.'),
  }
  const isFilter = (name: string) => !Object.hasOwn(controls, name)
  const text = z.union([z.string(), z.array(z.string())])
  return z
    .object({ ...filterShapes(kind), ...controls })
    .catchall(text)
    .superRefine((query, ctx) => refuseFilters(parseFilters(kind, query, isFilter), ctx), {
      // Also where a control is wrong: everything is to be found at once.
      when: () => true,
    })
    .transform((query): RecordQuery => {
      const { limit, offset, cursor, sort, q, match, fields } = query
      return {
        ...{ limit, offset, cursor, sort, q, match, fields, order: query.order, count: query.count },
        filters: parseFilters(kind, query, isFilter).filter((one): one is Filter => !('loc' in one)),
      }
    }) as unknown as z.ZodType<RecordQuery>
}

/** A repeated parameter is a second filter. */
function parseFilters(kind: Kind, query: object, isFilter: (name: string) => boolean): (Filter | Issue)[] {
  return Object.entries(query as Record<string, string | string[] | undefined>)
    .filter(([name]) => isFilter(name))
    .flatMap(([name, value]) => [value ?? []].flat().map((one) => parseFilter(kind, name, one)))
}

function refuseFilters(parsed: (Filter | Issue)[], ctx: z.RefinementCtx): void {
  const report = ({ loc, msg, type, input, hint }: Issue) =>
    ctx.addIssue({ code: 'custom', path: loc.slice(1), message: msg, params: { type, hint }, input })
  for (const one of parsed) if ('loc' in one) report(one)
  if (parsed.length > MAX_FILTERS)
    report({ loc: ['query'], msg: `at most ${MAX_FILTERS} filters`, type: 'too_big' })
}
