import { z } from 'zod'
import type { Issue } from '../../db/model/errors.ts'
import {
  type Filter,
  isSortable,
  MAX_FILTERS,
  MAX_VALUES,
  parseFilter,
  sortNames,
  unknownHint,
} from '../../db/model/records/filters.ts'
import type { Kind, KindName } from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { recordSchema } from '../../db/model/records/schemas.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { tryReadByType } from '../../db/records/custom-fields/query.ts'
import type { ListQuery } from '../../db/records/list.ts'
import { isTimezone, NO_TIMEZONE } from '../../workflows/shared/timezone.ts'
import { count, order, pageControls } from '../http/list-query.ts'
import type { RawQuery } from '../http/route.ts'
import { operatorsIn } from './filter-objects.ts'
import { anyFilters, filterShapes } from './filter-shapes.ts'

export interface RecordQuery extends Omit<ListQuery, 'offset'> {
  offset?: number | undefined
  /** The fields to return; undefined for all. */
  fields: string[] | undefined
}

/** Maximum number of unknown fields that an error names. */
const MAX_NAMED = 20

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
  const shown = kind && [...Object.keys(recordSchema(kind).shape), ...alsoShown]
  return {
    ...pageControls,
    sort: z
      .string()
      .default('created_at')
      .superRefine((field, ctx) => {
        if (!definition || isSortable(definition, field)) return
        const hint = sortHint(definition, field)
        ctx.addIssue({ code: 'custom', message: 'is not a field to sort by', params: { hint }, input: field })
      })
      .describe('The field to sort by, or `custom_fields.<name>`.'),
    order,
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
      .describe('Of dates and local times in filters. Default: that of the organization.'),
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
  }
}

/** Other APIs write the direction with the field: `-amount`, `amount:desc`. */
function sortHint(kind: Kind, written: string): string {
  const [, sign, field = '', direction] = /^([-+]?)(.*?)(?:[: ](asc|desc))?$/i.exec(written) ?? []
  if (field === written || !isSortable(kind, field))
    return unknownHint(kind, written, sortNames(kind), 'sort fields')
  const isDescending = sign === '-' || direction?.toLowerCase() === 'desc'
  return `write sort=${field}&order=${isDescending ? 'desc' : 'asc'}`
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
    .transform((query): RecordQuery => {
      const { limit, offset, cursor, sort, q, match, fields, time_zone } = query
      return {
        limit,
        offset,
        cursor,
        sort,
        q,
        match,
        fields,
        time_zone,
        order: query.order,
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
  const isDefined = (name: string) =>
    name.startsWith('custom_fields.') || definition.fields[name.split('[')[0]!]?.ofOrganization === true
  const filters = validFilters(parseFilters(definition, sent, isDefined))
  return tryReadByType(tx, kind, { sort: String(sent.sort), filters }).then(({ issues }) => issues)
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
