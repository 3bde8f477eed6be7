import { z } from 'zod'
import type { Issue } from '../../db/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { triedByType } from '../../db/records/custom-fields/query.ts'
import type { ListQuery } from '../../db/records/list.ts'
import {
  type Filter,
  isSortable,
  MAX_FILTERS,
  MAX_VALUES,
  parseFilter,
  sortNames,
  unknownHint,
} from '../../db/records/model/filters.ts'
import type { EntityName, Kind } from '../../db/records/model/kind.ts'
import { entities, entityNames } from '../../db/records/model/kinds/index.ts'
import { recordSchema } from '../../db/records/model/schemas.ts'
import { count, order, pageControls } from '../http/list-query.ts'
import type { RawQuery } from '../http/route.ts'
import { filterShapes } from './filter-shapes.ts'

export interface RecordQuery extends Omit<ListQuery, 'offset'> {
  offset?: number | undefined
  /** The fields to answer with; undefined for all. */
  fields: string[] | undefined
}

/** So many fields that there are not are named, which nobody gets by a slip. */
const MAX_NAMED = 20

/** The query parameters of a list of one kind: the controls, and a filter by every field. */
export const recordQuery = (entity: EntityName): z.ZodType<RecordQuery> => queries[entity]

/** The same of a related list, whose records also have their `association`. */
export const relatedQuery = (entity: EntityName): z.ZodType<RecordQuery> => relatedQueries[entity]

function buildQuery(entity: EntityName, alsoShown: string[] = []): z.ZodType<RecordQuery> {
  const kind = entities[entity]
  const shown = [...Object.keys(recordSchema(entity).shape), ...alsoShown]
  const controls = {
    ...pageControls,
    sort: z
      .string()
      .default('created_at')
      .superRefine((field, ctx) => {
        if (isSortable(kind, field)) return
        const hint = unknownHint(field, sortNames(kind), 'sort fields')
        ctx.addIssue({ code: 'custom', message: 'is not a field to sort by', params: { hint }, input: field })
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
      .superRefine((names, ctx) => {
        const unknown = [...new Set(names)].filter((name) => !shown.includes(name))
        if (unknown.length === 0) return
        const named = unknown.slice(0, MAX_NAMED).map((name) => name.slice(0, 100))
        const more = unknown.length > MAX_NAMED ? ` and ${unknown.length - MAX_NAMED} more` : ''
        const message = `has no field${unknown.length > 1 ? 's' : ''} ${named.join(', ')}${more}`
        ctx.addIssue({ code: 'custom', message, params: { hint: unknownHint(named, shown, 'fields') } })
      })
      .optional()
      .describe(
        'The fields to answer with, separated by commas; id and object are always there, all others are left out.',
      ),
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
        filters: soundOf(parseFilters(kind, query, isFilter)),
      }
    }) as unknown as z.ZodType<RecordQuery>
}

/** What only the definitions of custom fields say of a query that is wrong otherwise, as it was sent. */
export function customQueryIssues(tx: Tenant, entity: EntityName, sent: RawQuery): Promise<Issue[]> {
  const kind = entities[entity]
  const filters = soundOf(parseFilters(kind, sent, (name) => name.startsWith('custom_fields.')))
  return triedByType(tx, entity, { sort: String(sent.sort), filters }).then(({ issues }) => issues)
}

/** A repeated parameter is a second filter. */
function parseFilters(kind: Kind, query: object, isFilter: (name: string) => boolean): (Filter | Issue)[] {
  return (
    Object.entries(query as Record<string, string | string[] | undefined>)
      .filter(([name]) => isFilter(name))
      .flatMap(([name, value]) => [value ?? []].flat().map((one) => [name, one] as const))
      // One more than there may be is enough to see that they are too many.
      .slice(0, MAX_FILTERS + 1)
      .map(([name, one]) => parseFilter(kind, name, one))
  )
}

const soundOf = (parsed: (Filter | Issue)[]) => parsed.filter((one): one is Filter => !('loc' in one))

function refuseFilters(parsed: (Filter | Issue)[], ctx: z.RefinementCtx): void {
  const report = ({ loc, msg, type, input, hint }: Issue) =>
    ctx.addIssue({ code: 'custom', path: loc.slice(1), message: msg, params: { type, hint }, input })
  const tooMuch = (msg: string) => report({ loc: ['query'], msg, type: 'too_big' })
  let values = 0
  for (const one of parsed.slice(0, MAX_FILTERS))
    if ('loc' in one) report(one)
    else values += one.values.length
  if (parsed.length > MAX_FILTERS) tooMuch(`at most ${MAX_FILTERS} filters`)
  if (values > MAX_VALUES) tooMuch(`at most ${MAX_VALUES.toLocaleString('en')} values in all filters`)
}

type Queries = Record<EntityName, z.ZodType<RecordQuery>>

const queries = Object.fromEntries(entityNames.map((entity) => [entity, buildQuery(entity)])) as Queries

/** Made once, for six routes share each. */
const relatedQueries = Object.fromEntries(
  entityNames.map((entity) => [entity, buildQuery(entity, ['association'])]),
) as Queries
