import { z } from 'zod'
import {
  type FieldType,
  type Kind,
  type KindName,
  referencesOf,
  withArticle,
} from '../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import { createSchema, recordSchema, updateSchema } from '../../db/model/records/schemas.ts'
import { createRecord } from '../../db/records/create.ts'
import { deleteRecord } from '../../db/records/delete.ts'
import { existingValues } from '../../db/records/existing.ts'
import { withExpanded } from '../../db/records/expand.ts'
import { inputIssues } from '../../db/records/input-issues.ts'
import { listRecords } from '../../db/records/list.ts'
import { findRecord, getRecord } from '../../db/records/read.ts'
import { updateRecord } from '../../db/records/update.ts'
import { DELETED_AT, deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { offsetOf, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows } from '../http/scopes.ts'
import { expandOf } from './expand-parameter.ts'
import { expandScopes, filterScopes } from './filter-scopes.ts'
import { linkScopes, linkScopesNote, writeScopes } from './link-scopes.ts'
import { customQueryIssues, recordParameters, recordQuery } from './record-query.ts'
import { recordList, recordParams, selectFields, tagOf, title, withETag } from './record-shapes.ts'

/** Examples of filters on fields of the kind. */
function listNote(kind: KindName): string {
  const { fields } = kinds[kind]
  const first = (type: FieldType) => Object.keys(fields).find((name) => fields[name]!.type === type)
  const choice = Object.keys(fields).find((name) => (fields[name]!.values?.length ?? 0) > 1)
  const examples = [
    'created_at[gte]=2026-01-01',
    ...(choice ? [`${choice}[in]=${fields[choice]!.values!.slice(0, 2).join(',')}`] : []),
    `${first('reference') ?? 'owner_id'}[is_null]=true`,
    'tags[has]=vip',
    'custom_fields.tier=gold',
  ]
  return `Filters are parameters: ${examples.map((one) => `\`${one}\``).join(', ')}. See "Lists" in the introduction.`
}

const PATCH =
  'Absent members are unchanged, null clears a field, `custom_fields` are merged key by key, an `address` is replaced as a whole. A custom field can always keep its stored value.'

/** How a reference field and associations affect each other. */
function primaryNote(kind: KindName): string {
  const [name] = referencesOf(kinds[kind])[0] ?? []
  if (name === undefined) return ''
  return `Setting \`${name}\` associates the two records, clearing it removes the association. If it changes, the previous association remains if it has a label or properties.`
}

/** Create, read, update, delete and list for each kind. */
export const objectRoutes: Route[] = kindNames.flatMap(routesOf)

function routesOf(kind: KindName): Route[] {
  const { object, example } = kinds[kind]
  const described = { kind, object, example, record: recordSchema(kind) }
  return [
    listRoute(kind),
    createRoute(described),
    getRoute(described),
    updateRoute(described),
    deleteRoute(described),
  ]
}

/** A kind of record with the schema of its records. */
interface Described extends Pick<Kind, 'object' | 'example'> {
  kind: KindName
  record: ReturnType<typeof recordSchema>
}

function listRoute(kind: KindName): Route {
  return route({
    method: 'GET',
    path: `/objects/${kind}`,
    scope: `${kind}:read`,
    id: `list${title(kind)}`,
    tag: tagOf(kind),
    summary: `List ${kind}`,
    description: listNote(kind),
    query: { of: () => recordQuery(kind), documented: recordParameters(kind) },
    response: { status: 200, schema: recordList(kind) },
    handler: async ({ query, requireScopes, tenant }) => {
      requireScopes([
        ...(query.deleted ? [`${kind}:write` as const] : []),
        ...filterScopes(query),
        ...expandScopes(kind, query.expand),
      ])
      const offset = offsetOf(query)
      const page = await tenant(async (tx) => {
        const found = await listRecords(tx, kind, { ...query, offset })
        return { ...found, data: await withExpanded(tx, kind, found.data, query.expand) }
      })
      return presentList({ ...page, data: selectFields(page.data, query) })
    },
    otherIssues: ({ tenant }, { query }) => tenant((tx) => customQueryIssues(tx, kind, query)),
  })
}

function createRoute({ kind, object, example, record }: Described): Route {
  return route({
    method: 'POST',
    path: `/objects/${kind}`,
    scope: `${kind}:write`,
    id: `create${title(object)}`,
    grows: true,
    tag: tagOf(kind),
    summary: `Create ${withArticle(object)}`,
    description:
      `${linkScopesNote(kind)} Each of the \`associations\` needs the write scope of its kind.`.trim(),
    body: createSchema(kind),
    response: { status: 201, schema: record },
    example,
    etag: true,
    handler: async ({ body, requireScopes, tenant, setHeader }) => {
      requireScopes(writeScopes(kind, body, true))
      const made = await tenant(async (tx) => {
        // In one round trip with the first statement of the creation; so the new record is not among them.
        const [warnings, record] = await Promise.all([
          existingValues(tx, kind, body),
          createRecord(tx, kind, body, { isLast: true }),
        ])
        return { ...record, ...(warnings.length > 0 && { warnings }) }
      })
      return withETag(setHeader, made)
    },
    otherIssues: (request, { body }) => bodyIssues(request, kind, body),
  })
}

function getRoute({ kind, object, record }: Described): Route {
  return route({
    tag: tagOf(kind),
    params: recordParams,
    method: 'GET',
    path: `/objects/${kind}/{entity_id}`,
    scope: `${kind}:read`,
    id: `get${title(object)}`,
    exampleOf: `create${title(object)}`,
    summary: `Retrieve ${withArticle(object)}`,
    query: z.strictObject({ expand: expandOf(kinds[kind]) }),
    response: { status: 200, schema: record },
    etag: true,
    handler: async ({ params, query: { expand }, requireScopes, tenant, oneStatement, setHeader }) => {
      if (expand) {
        requireScopes(expandScopes(kind, expand))
        const [shown] = await tenant(async (tx) =>
          withExpanded(tx, kind, [await getRecord(tx, kind, params.entity_id)], expand),
        )
        return withETag(setHeader, shown!)
      }
      const found = await oneStatement((tx) => findRecord(tx, kind, params.entity_id))
      // A record that is not found may have been merged into another.
      return withETag(setHeader, found ?? (await tenant((tx) => getRecord(tx, kind, params.entity_id))))
    },
  })
}

function updateRoute({ kind, object, example, record }: Described): Route {
  return route({
    tag: tagOf(kind),
    params: recordParams,
    method: 'PATCH',
    path: `/objects/${kind}/{entity_id}`,
    scope: `${kind}:write`,
    id: `update${title(object)}`,
    grows: true,
    summary: `Update ${withArticle(object)}`,
    description: [PATCH, primaryNote(kind), linkScopesNote(kind)].filter(Boolean).join(' '),
    body: updateSchema(kind),
    response: { status: 200, schema: record },
    example: changeOf(example),
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, requireScopes, tenant, setHeader }) => {
      requireScopes(linkScopes(kind, body))
      const ifVersion = ifMatch(headers)
      return withETag(
        setHeader,
        await tenant((tx) => updateRecord(tx, kind, params.entity_id, body, { ifVersion, isLast: true })),
      )
    },
    otherIssues: (request, { body }) => bodyIssues(request, kind, body, request.params.entity_id),
  })
}

function deleteRoute({ kind, object }: Described): Route {
  return route({
    tag: tagOf(kind),
    params: recordParams,
    method: 'DELETE',
    path: `/objects/${kind}/{entity_id}`,
    scope: `${kind}:write`,
    id: `delete${title(object)}`,
    summary: `Delete ${withArticle(object)}`,
    description:
      'The record can be restored within 30 days. Its associations are removed, and restored with it.',
    response: deletion(object, { id: z.uuid(), ...DELETED_AT }),
    ifMatch: true,
    handler: async ({ params, headers, tenant }) =>
      tenant((tx) => deleteRecord(tx, kind, params.entity_id, { ifVersion: ifMatch(headers) })),
  })
}

/** The example body of a PATCH. */
function changeOf(example: Record<string, unknown>): object {
  const [first] = Object.entries(example)
  return { ...Object.fromEntries([first!]), tags: ['vip'], custom_fields: { tier: 'gold' } }
}

/**
 * The issues of a body. References are checked only if the caller may link: other callers must not learn which records
 * exist.
 */
const bodyIssues = (
  { caller, tenant }: Pick<RouteRequest, 'caller' | 'tenant'>,
  kind: KindName,
  body: unknown,
  changes?: string,
) => {
  const mayLink = (to: KindName) => allows(caller.scopes, `${to}:write`)
  return tenant((tx) => inputIssues(tx, kind, body, { changes, mayLink }))
}
