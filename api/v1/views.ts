import { z } from 'zod'
import { invalid } from '../../db/model/errors.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { actor, fieldsSchema } from '../../db/model/records/schemas.ts'
import { check } from '../../db/model/validate.ts'
import { checkSelection, type Selection } from '../../db/records/selection.ts'
import {
  createView,
  deleteView,
  getView,
  listViews,
  updateView,
  type View,
  type ViewPatch,
} from '../../db/records/views.ts'
import { deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows } from '../http/scopes.ts'
import { filterScopes } from './filter-scopes.ts'
import { withETag } from './record-shapes.ts'
import { asTexts, checkFields, parseSelection, storedQuery } from './stored-query.ts'

const VIEWS = 'views'
const tag = 'Views'

const members = {
  name: z.string().trim().min(1).max(200),
  query: storedQuery(VIEWS).describe('Filters, `q` and sort, as parameters of the list.'),
  fields: z
    .array(z.string().max(100))
    .min(1)
    .max(200)
    .nullable()
    .describe('The columns, in their order; null for all.'),
  shared: z.boolean().describe('Whether everybody sees it who may read the kind. Otherwise only its author.'),
}

/** Checks a query and columns of the kind; the types of custom fields are checked with the database. */
function checked(entity: KindName, { query, fields }: ViewPatch, ctx: z.RefinementCtx) {
  checkFields(fields ?? null, Object.keys(fieldsSchema(entity).shape), ctx)
  return query && parseSelection(entity, query, VIEWS, ctx)
}

const newView = z
  .strictObject({
    ...members,
    entity: z.enum(kindNames).describe('The kind of the records.'),
    query: members.query.default({}),
    fields: members.fields.default(null),
    shared: members.shared.default(false),
  })
  .meta({ id: 'ViewCreate' })
  .transform(({ entity, ...given }, ctx) => {
    const values = { ...given, query: asTexts(given.query) }
    const selection = checked(entity, values, ctx)
    return selection ? { entity, values, selection } : z.NEVER
  })

const viewPatch = z
  .strictObject(members)
  .partial()
  .meta({ id: 'ViewUpdate' })
  .transform(({ query, ...given }): ViewPatch => ({ ...given, ...(query && { query: asTexts(query) }) }))

const view = z
  .object({
    object: z.literal('view'),
    id: z.uuid(),
    entity: z.enum(kindNames),
    ...members,
    query: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
    path: z.string().describe('The list with its parameters, to be appended to the base address.'),
    version: z.int(),
    created_by: actor,
    updated_by: actor,
    created_at: z.date(),
    updated_at: z.date(),
  })
  .meta({ id: 'View' })

const one = { tag, path: '/views/{view_id}', params: z.object({ view_id: z.uuid().toLowerCase() }) }

export const viewRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/views',
    scope: { ofRecords: 'read' },
    id: 'listViews',
    tag,
    summary: 'List views',
    description: 'Lists the own and the shared views of the kinds that the key can read, newest first.',
    query: z.strictObject({ entity: z.enum(kindNames).optional().describe('The kind.'), ...pageControls }),
    response: { status: 200, schema: listEnvelope(view) },
    handler: async ({ query: { entity, ...page }, caller, tenant, requireScopes }) => {
      if (entity) requireScopes([`${entity}:read`])
      const readable = entity ? [entity] : kindNames.filter((kind) => allows(caller.scopes, `${kind}:read`))
      const found = await tenant((tx) => listViews(tx, readable, { ...page, offset: offsetOf(page) }))
      return presentList({ ...found, data: found.data.map(present) })
    },
  }),
  route({
    method: 'POST',
    path: '/views',
    scope: { ofRecords: 'write' },
    id: 'createView',
    grows: true,
    tag,
    summary: 'Create a view',
    description:
      'Saves filters, sort and columns of a list under a name. `path` of the response is that list.',
    body: newView,
    response: { status: 201, schema: view },
    example: {
      entity: 'contacts',
      name: 'New this week',
      query: { 'created_at[gte]': 'this_week', lead_status: 'new', sort: 'last_name', order: 'asc' },
      fields: ['first_name', 'last_name', 'email'],
      shared: true,
    },
    etag: true,
    handler: async ({ body: { entity, values, selection }, requireScopes, tenant, setHeader }) => {
      requireScopes([`${entity}:write`, ...filterScopes(selection)])
      const made = await tenant(async (tx) => {
        await checkSelection(tx, entity, selection)
        return createView(tx, entity, values)
      })
      return withETag(setHeader, present(made))
    },
  }),
  route({
    ...one,
    method: 'GET',
    scope: { ofRecords: 'read' },
    id: 'getView',
    summary: 'Retrieve a view',
    response: { status: 200, schema: view },
    etag: true,
    handler: async ({ params, tenant, requireScopes, setHeader }) => {
      const found = await tenant((tx) => getView(tx, params.view_id))
      requireScopes([`${found.entity}:read`])
      return withETag(setHeader, present(found))
    },
  }),
  route({
    ...one,
    method: 'PATCH',
    scope: { ofRecords: 'write' },
    id: 'updateView',
    grows: true,
    summary: 'Update a view',
    description:
      'Absent members are unchanged; `query` is replaced as a whole. A shared view can be changed by all who may write the kind; only its author makes it private.',
    body: viewPatch,
    response: { status: 200, schema: view },
    example: { name: 'New since Monday' },
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, tenant, requireScopes, setHeader }) => {
      const ifVersion = ifMatch(headers)
      const { entity } = await writable({ params, tenant, requireScopes })
      const selection = parsed(entity, body)
      if (selection) requireScopes(filterScopes(selection))
      const after = await tenant(async (tx) => {
        if (selection) await checkSelection(tx, entity, selection)
        return updateView(tx, params.view_id, body, ifVersion)
      })
      return withETag(setHeader, present(after))
    },
  }),
  route({
    ...one,
    method: 'DELETE',
    scope: { ofRecords: 'write' },
    id: 'deleteView',
    summary: 'Delete a view',
    response: deletion('view'),
    ifMatch: true,
    handler: async ({ params, headers, tenant, requireScopes }) => {
      const ifVersion = ifMatch(headers)
      await writable({ params, tenant, requireScopes })
      await tenant((tx) => deleteView(tx, params.view_id, ifVersion))
      return { object: 'view', id: params.view_id, deleted: true }
    },
  }),
]

/** Throws not_found, insufficient_scope. */
async function writable({
  params,
  tenant,
  requireScopes,
}: Pick<RouteRequest<{ view_id: string }>, 'params' | 'tenant' | 'requireScopes'>): Promise<View> {
  const found = await tenant((tx) => getView(tx, params.view_id))
  requireScopes([`${found.entity}:write`])
  return found
}

/** The selection of a patch, whose kind only the stored view has. Throws `validation_error`. */
function parsed(entity: KindName, patch: ViewPatch) {
  if (!patch.query && !patch.fields) return undefined
  const schema = z.unknown().transform((_, ctx) => checked(entity, patch, ctx))
  const result = check(schema, null, 'body')
  if ('issues' in result) throw invalid(result.issues)
  return result.value as Selection | undefined
}

function present(row: View) {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(row.query))
    for (const text of [value].flat()) parameters.append(name, text)
  if (row.fields) parameters.append('fields', row.fields.join(','))
  const search = parameters.size > 0 ? `?${parameters}` : ''
  return { object: 'view' as const, ...row, path: `/v1/objects/${row.entity}${search}` }
}
