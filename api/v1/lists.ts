import { z } from 'zod'
import { invalid } from '../../db/model/errors.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { actor } from '../../db/model/records/schemas.ts'
import { check } from '../../db/model/validate.ts'
import {
  createList,
  deleteList,
  getList,
  LIST_TYPES,
  type List,
  type ListFilter,
  type ListPatch,
  listLists,
  updateList,
} from '../../db/records/lists/lists.ts'
import { changeMembers, MAX_CHANGED } from '../../db/records/lists/members.ts'
import { LIST_ID } from '../../workflows/shared/related-filters.ts'
import { deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows, type Caller } from '../http/scopes.ts'
import { filterScopes } from './filter-scopes.ts'
import { withETag } from './record-shapes.ts'
import { asTexts, parseSelection, type StoredQuery, storedQuery } from './stored-query.ts'

const LISTS = 'lists'
const tag = 'Lists'

const members = {
  name: z.string().trim().min(1).max(200),
  description: z.string().trim().max(2_000).nullable(),
  query: storedQuery(LISTS).describe('Filters and `q`, as parameters of the list.'),
}

/** Parameters that a filter has no use for, each with the reason. */
const REFUSED: Record<string, string> = {
  sort: 'is not supported by lists: each reader sorts its members',
  order: 'is not supported by lists: each reader sorts its members',
}

/** Reads the filter of a list. Reports issues below `query`. @returns undefined with issues. */
function filterOf(entity: KindName, query: StoredQuery, ctx: z.RefinementCtx): ListFilter | undefined {
  const refuse = (name: string, message: string) =>
    ctx.addIssue({ code: 'custom', path: ['query', name], message, input: query[name] })
  const refused = Object.keys(query).filter((name) => Object.hasOwn(REFUSED, name))
  for (const name of refused) refuse(name, REFUSED[name]!)
  const selection = parseSelection(entity, query, LISTS, ctx)
  // Two lists by each other would change for ever.
  const named = Object.keys(query).filter((name) => name.split('[')[0] === LIST_ID)
  for (const name of named) refuse(name, 'a list cannot depend on other lists: write their filters')
  if (!selection || refused.length > 0 || named.length > 0) return undefined
  if (selection.filters.length === 0 && selection.q === undefined) {
    const message = 'has no filter: every record would be a member'
    ctx.addIssue({ code: 'custom', path: ['query'], message, params: { type: 'missing' } })
    return undefined
  }
  return { query, selection }
}

const newList = z
  .strictObject({
    entity: z.enum(kindNames).describe('The kind of the records.'),
    name: members.name,
    description: members.description.default(null),
    type: z
      .enum(LIST_TYPES)
      .describe('`static`: members are added and removed; `filter`: the records that match `query`.'),
    query: members.query.optional(),
  })
  .meta({ id: 'ListCreate' })
  .transform(({ type, query, ...values }, ctx) => {
    const report = (message: string, kind: string) =>
      ctx.addIssue({ code: 'custom', path: ['query'], message, params: { type: kind }, input: query })
    if (type === 'static') {
      if (query) report('is only of lists of the type filter', 'invalid_value')
      return query ? z.NEVER : { ...values, filter: undefined }
    }
    if (!query) {
      report('is required for a list of the type filter', 'missing')
      return z.NEVER
    }
    const filter = filterOf(values.entity, asTexts(query), ctx)
    return filter ? { ...values, filter } : z.NEVER
  })

const listPatch = z
  .strictObject(members)
  .partial()
  .meta({ id: 'ListUpdate' })
  .transform(({ query, ...given }) => ({ ...given, ...(query && { query: asTexts(query) }) }))

const list = z
  .object({
    object: z.literal('record_list'),
    id: z.uuid(),
    entity: z.enum(kindNames),
    name: z.string(),
    description: z.string().nullable(),
    type: z.enum(LIST_TYPES),
    query: z.record(z.string(), z.union([z.string(), z.array(z.string())])).nullable(),
    status: z
      .enum(['ready', 'filling', 'failed'])
      .describe('`filling`: not all records were compared yet; `failed`: see `problem`.'),
    problem: z.string().nullable(),
    member_count: z.int(),
    path: z.string().describe('The list of its members, to be appended to the base address.'),
    version: z.int(),
    created_by: actor,
    updated_by: actor,
    created_at: z.date(),
    updated_at: z.date(),
  })
  .meta({ id: 'RecordList' })

const ids = z.array(z.uuid().toLowerCase())
const memberChange = z
  .strictObject({
    add: ids.default([]),
    remove: ids.default([]),
  })
  .superRefine(({ add, remove }, ctx) => {
    const all = [...add, ...remove]
    const refuse = (message: string) => ctx.addIssue({ code: 'custom', path: [], message })
    if (all.length === 0 || all.length > MAX_CHANGED) refuse(`names 1 to ${MAX_CHANGED} records together`)
    if (new Set(all).size < all.length) refuse('names a record twice')
  })
  .meta({ id: 'ListMembersChange' })

const memberResults = z
  .object({
    object: z.literal('list_members'),
    list_id: z.uuid(),
    member_count: z.int(),
    results: z.array(
      z.object({
        id: z.uuid(),
        status: z.enum(['added', 'removed', 'unchanged', 'not_found']),
      }),
    ),
  })
  .meta({ id: 'ListMembersResult' })

const params = z.object({ list_id: z.uuid().toLowerCase() })
const one = { tag, path: '/lists/{list_id}', params }

export const listRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/lists',
    scope: { ofRecords: 'read' },
    id: 'listLists',
    tag,
    summary: 'List lists of records',
    description: 'Lists the lists of the kinds that the key can read, newest first.',
    query: z.strictObject({ entity: z.enum(kindNames).optional().describe('The kind.'), ...pageControls }),
    response: { status: 200, schema: listEnvelope(list) },
    handler: async ({ query: { entity, ...page }, caller, tenant, requireScopes }) => {
      if (entity) requireScopes([`${entity}:read`])
      const readable = entity ? [entity] : kindNames.filter((kind) => allows(caller.scopes, `${kind}:read`))
      const found = await tenant((tx) => listLists(tx, readable, { ...page, offset: offsetOf(page) }))
      return presentList({ ...found, data: found.data.map((row) => present(row, caller)) })
    },
  }),
  route({
    method: 'POST',
    path: '/lists',
    scope: { ofRecords: 'write' },
    id: 'createList',
    grows: true,
    tag,
    summary: 'Create a list of records',
    description:
      '`path` of the response, and `list_id=` in any list, has its members; `list.entered` and `list.left` tell of them, but not while it is filled.',
    body: newList,
    response: { status: 201, schema: list },
    example: {
      entity: 'contacts',
      name: 'New leads',
      type: 'filter',
      query: { lead_status: 'new', 'created_at[gte]': 'last_7_days' },
    },
    etag: true,
    handler: async ({ body, caller, requireScopes, tenant, setHeader }) => {
      const read = body.filter ? filterScopes(body.filter.selection) : []
      requireScopes([`${body.entity}:write`, ...read])
      return withETag(setHeader, present(await tenant((tx) => createList(tx, body)), caller))
    },
  }),
  route({
    ...one,
    method: 'GET',
    scope: { ofRecords: 'read' },
    id: 'getList',
    summary: 'Retrieve a list of records',
    response: { status: 200, schema: list },
    etag: true,
    handler: async ({ params, caller, tenant, requireScopes, setHeader }) => {
      const found = await tenant((tx) => getList(tx, params.list_id))
      requireScopes([`${found.entity}:read`])
      return withETag(setHeader, present(found, caller))
    },
  }),
  route({
    ...one,
    method: 'PATCH',
    scope: { ofRecords: 'write' },
    id: 'updateList',
    grows: true,
    summary: 'Update a list of records',
    description: 'Absent members are unchanged; `query` is replaced as a whole, and the list filled anew.',
    body: listPatch,
    response: { status: 200, schema: list },
    example: { name: 'Leads of this week' },
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, caller, tenant, requireScopes, setHeader }) => {
      const ifVersion = ifMatch(headers)
      const before = await writable({ params, tenant, requireScopes })
      const { query, ...patch } = body
      const filter = query && checkedFilter(before, query)
      if (filter) requireScopes(filterScopes(filter.selection))
      const given: ListPatch = { ...patch, ...(filter && { filter }) }
      const after = await tenant((tx) => updateList(tx, params.list_id, given, ifVersion))
      return withETag(setHeader, present(after, caller))
    },
  }),
  route({
    ...one,
    method: 'DELETE',
    scope: { ofRecords: 'write' },
    id: 'deleteList',
    summary: 'Delete a list of records',
    description: 'Its records stay.',
    response: deletion('record_list'),
    ifMatch: true,
    handler: async ({ params, headers, tenant, requireScopes }) => {
      const ifVersion = ifMatch(headers)
      await writable({ params, tenant, requireScopes })
      await tenant((tx) => deleteList(tx, params.list_id, ifVersion))
      return { object: 'record_list', id: params.list_id, deleted: true }
    },
  }),
  route({
    method: 'POST',
    path: '/lists/{list_id}/members',
    params,
    scope: { ofRecords: 'write' },
    id: 'changeListMembers',
    grows: ({ add }) => add.length > 0,
    tag,
    summary: 'Add and remove members of a static list',
    description: `Idempotent; up to ${MAX_CHANGED} records.`,
    body: memberChange,
    response: { status: 200, schema: memberResults },
    example: { add: ['01890a5d-ac96-774b-bcce-b302099a8057'] },
    handler: async ({ params, body, tenant, requireScopes }) => {
      await writable({ params, tenant, requireScopes })
      return tenant(async (tx) => {
        const results = await changeMembers(tx, params.list_id, body)
        const { member_count } = await getList(tx, params.list_id)
        return { object: 'list_members' as const, list_id: params.list_id, member_count, results }
      })
    },
  }),
]

/** Throws not_found, insufficient_scope. */
async function writable({
  params,
  tenant,
  requireScopes,
}: Pick<RouteRequest<{ list_id: string }>, 'params' | 'tenant' | 'requireScopes'>): Promise<List> {
  const found = await tenant((tx) => getList(tx, params.list_id))
  requireScopes([`${found.entity}:write`])
  return found
}

/** The filter of a patch, whose kind only the stored list has. Throws `validation_error`. */
function checkedFilter({ entity, type }: List, query: StoredQuery): ListFilter {
  const schema = z.unknown().transform((_, ctx) => {
    if (type === 'filter') return filterOf(entity, query, ctx)
    const message = 'is only of lists of the type filter'
    ctx.addIssue({ code: 'custom', path: ['query'], message, params: { type: 'invalid_value' } })
    return undefined
  })
  const result = check(schema, null, 'body')
  if ('issues' in result) throw invalid(result.issues)
  return result.value as ListFilter
}

const statusOf = ({ problem, filled_at }: List) =>
  problem !== null ? 'failed' : filled_at ? 'ready' : 'filling'

/** A caller who may not read what a filter reads, sees its members, but not the filter. */
function present(row: List, { scopes }: Pick<Caller, 'scopes'>) {
  const { filled_at: _, selection, query, ...shown } = row
  const isReadable = !selection || filterScopes(selection).every((scope) => allows(scopes, scope))
  return {
    object: 'record_list' as const,
    ...shown,
    query: isReadable ? query : null,
    status: statusOf(row),
    path: `/v1/objects/${row.entity}?${LIST_ID}=${row.id}`,
  }
}
