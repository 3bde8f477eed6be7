import { z } from 'zod'
import type { Issue } from '../../db/model/errors.ts'
import {
  type Filter,
  knownHop,
  MAX_FILTERS,
  MAX_VALUES,
  parseFilter,
  unknownHint,
} from '../../db/model/records/filters.ts'
import type { Kind, KindName } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { fieldsSchema } from '../../db/model/records/schemas.ts'
import { hasDirections } from '../../db/model/records/sorts.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { tryReadByType } from '../../db/records/custom-fields/query.ts'
import type { ListQuery } from '../../db/records/list.ts'
import { isTimezone, NO_TIMEZONE } from '../../workflows/shared/timezone.ts'
import { count, pageControls } from '../http/list-query.ts'
import type { RawQuery } from '../http/route.ts'
import { expandOf, refuseWidePage } from './expand-parameter.ts'
import { operatorsIn } from './filter-objects.ts'
import { anyFilters, filterShapes } from './filter-shapes.ts'
import { refuseOrder, sortControls } from './sort-parameters.ts'

export interface RecordQuery extends Omit<ListQuery, 'offset'> {
  offset?: number | undefined
  /** The fields to return; undefined for all. */
  fields: string[] | undefined
  /** What is shown beside each record. */
  expand: string[] | undefined
}

/** Maximum number of unknown fields that an error names. */
const MAX_NAMED = 20

const deleted = z
  .enum(['true', 'false'])
  .optional()
  .describe(
    '`true`: the deleted records that can be restored, with `deleted_at`, instead of the others. Needs the scope to write the kind, as a restore does.',
  )

/** The query parameters of a list of one kind: the controls, and the filters of its fields. */
export const recordQuery = (kind: KindName): z.ZodType<RecordQuery> => queries[kind]

/** The same for the list of associated records, which also have the member `association`. */
export const relatedQuery = (kind: KindName): z.ZodType<RecordQuery> => relatedQueries[kind]

/** The parameters of a list for OpenAPI. */
export const recordParameters = (kind: KindName) =>
  z.object({ ...controlsOf(kind), ...filterShapes(kinds[kind]) })

/** The same for the list of associated records of any kind. */
export const relatedParameters = z.object({ ...controlsOf(), filters: anyFilters })

/** The parameters other than filters. Without `kind`: those of any kind. */
function controlsOf(kind?: KindName, alsoShown: string[] = []) {
  const definition = kind && kinds[kind]
  const shown = kind && [...Object.keys(fieldsSchema(kind).shape), ...alsoShown]
  return {
    ...pageControls,
    ...sortControls(definition),
    q: z
      .string()
      .max(500)
      .optional()
      .describe(
        'Full-text search: every word must occur in some field of the record, custom fields included, without regard to case and accents. Phone numbers are found in any spelling.',
      ),
    match: z
      .enum(['all', 'any'])
      .default('all')
      .describe('`all`: records that match every filter; `any`: at least one filter.'),
    count,
    time_zone: z
      .string()
      .max(64)
      .refine(isTimezone, NO_TIMEZONE)
      .optional()
      .describe('For dates and local times in filters. Default: that of the organization.'),
    fields: z
      .string()
      .transform((list) => list.split(',').map((name) => name.trim()))
      .superRefine((names, ctx) => {
        const unknown = shown ? [...new Set(names)].filter((name) => !shown.includes(name)) : []
        if (!shown || unknown.length === 0) return
        const named = unknown.slice(0, MAX_NAMED).map((name) => name.slice(0, 100))
        const more = unknown.length > MAX_NAMED ? ` and ${unknown.length - MAX_NAMED} more` : ''
        const message = `has no field${unknown.length > 1 ? 's' : ''} ${named.join(', ')}${more}`
        ctx.addIssue({
          code: 'custom',
          message,
          params: { hint: unknownHint(definition, named, shown, 'fields') },
        })
      })
      .optional()
      .describe('The fields to return, separated by commas. `id` and `object` are always returned.'),
    expand: expandOf(definition),
    ...(kind && alsoShown.length === 0 && { deleted }),
  }
}

function buildQuery(kind: KindName, alsoShown: string[] = []): z.ZodType<RecordQuery> {
  const definition = kinds[kind]
  const controls = controlsOf(kind, alsoShown)
  const isFilter = (name: string) => !Object.hasOwn(controls, name)
  const text = z.union([z.string(), z.array(z.string())])
  return z
    .object(controls)
    .catchall(text)
    .superRefine((query, ctx) => refuseFilters(parseFilters(definition, query, isFilter), ctx), {
      // Runs even if a control parameter is invalid: a response lists all issues.
      when: () => true,
    })
    .superRefine((query, ctx) => {
      refuseOrder(query, ctx)
      refuseWidePage(definition, query, ctx)
    })
    .transform((query): RecordQuery => {
      const { limit, offset, cursor, sort, q, match, fields, expand, time_zone } = query
      const isDeleted = (query as { deleted?: string }).deleted === 'true'
      const order = query.order ?? (hasDirections(sort) ? 'asc' : 'desc')
      return {
        limit,
        offset,
        cursor,
        sort,
        q,
        match,
        fields,
        expand,
        time_zone,
        ...(isDeleted && { deleted: true }),
        order,
        count: query.count,
        filters: validFilters(parseFilters(definition, query, isFilter)),
      }
    }) as unknown as z.ZodType<RecordQuery>
}

/**
 * The issues of filters and sorts by custom fields, and of filters by stages, in a query that has other issues. They
 * depend on what the organization defines, which is in the database.
 */
export function customQueryIssues(tx: Tenant, kind: KindName, sent: RawQuery): Promise<Issue[]> {
  const definition = kinds[kind]
  const isDefined = (name: string) => {
    const field = name.split('[')[0]!
    return (
      /(^|\.)custom_fields\./.test(field) ||
      knownHop(definition, field) !== undefined ||
      definition.fields[field]?.ofOrganization === true
    )
  }
  const filters = validFilters(parseFilters(definition, sent, isDefined))
  return tryReadByType(tx, kind, { sort: String(sent.sort), order: 'asc', filters }).then(
    ({ issues }) => issues,
  )
}

/** The filters of a query. A parameter that is repeated is several filters. */
function parseFilters(kind: Kind, query: object, isFilter: (name: string) => boolean): (Filter | Issue)[] {
  return (
    Object.entries(query as Record<string, string | string[] | undefined>)
      .filter(([name]) => isFilter(name))
      .flatMap(([name, value]) => [value ?? []].flat().flatMap((one) => parametersIn(name, one)))
      // One above the limit is enough to refuse the query.
      .slice(0, MAX_FILTERS + 1)
      .map(([name, one]) => parseFilter(kind, name, one))
  )
}

/** One parameter, or one for each operator of a dictionary. */
const parametersIn = (name: string, value: string): [name: string, value: string][] =>
  operatorsIn(value)?.map(([operator, one]) => [`${name}[${operator}]`, one]) ?? [[name, value]]

const validFilters = (parsed: (Filter | Issue)[]) => parsed.filter((one): one is Filter => !('loc' in one))

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

type Queries = Record<KindName, z.ZodType<RecordQuery>>

const queries = Object.fromEntries(kindNames.map((kind) => [kind, buildQuery(kind)])) as Queries

const relatedQueries = Object.fromEntries(
  kindNames.map((kind) => [kind, buildQuery(kind, ['association'])]),
) as Queries
