import { z } from 'zod'
import { createRecord } from '../../db/records/create.ts'
import { deleteRecord } from '../../db/records/delete.ts'
import { inputIssues } from '../../db/records/input-issues.ts'
import { listRecords } from '../../db/records/list.ts'
import { CUSTOM_FIELD_TYPES, customTypes } from '../../db/records/model/custom-fields/types.ts'
import { type EntityName, type FieldType, referencesOf, withArticle } from '../../db/records/model/kind.ts'
import { entities, entityNames } from '../../db/records/model/kinds/index.ts'
import {
  type AgxRecord,
  createSchema,
  listedSchema,
  recordSchema,
  updateSchema,
} from '../../db/records/model/schemas.ts'
import { findRecord, getRecord } from '../../db/records/read.ts'
import { updateRecord } from '../../db/records/update.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, presentList } from '../http/list-query.ts'
import { type Route, type RouteRequest, route } from '../http/route.ts'
import { allows, requireScopes } from '../http/scopes.ts'
import { WHOLE_DAYS } from './filter-shapes.ts'
import { linkScopes, linkScopesNote } from './link-scopes.ts'
import { customQueryIssues, type RecordQuery, recordQuery } from './record-query.ts'

export const recordParams = z.object({ entity_id: z.uuid().toLowerCase() })

/** The name of a kind in tags and operation ids. */
export const title = (name: string): string => name[0]!.toUpperCase() + name.slice(1)

const CUSTOM_OPERATORS = CUSTOM_FIELD_TYPES.map((type) => `${type}: ${customTypes[type].operators.join(' ')}`)

const SPEED_NOTE =
  'However many records there are, a list is quick that is sorted by created_at or updated_at, or filtered to few by id, email, domain, owner_id or what it belongs to; so is q. Other sorts look at every record that matches.'

const CUSTOM_NOTE = `A custom field that has a definition (/v1/custom-fields) is filtered and sorted by its type, one without as a text. Operators by type: ${CUSTOM_OPERATORS.join('; ')}.`

/** With fields that the kind has. */
function listNote(entity: EntityName): string {
  const { fields } = entities[entity]
  const first = (type: FieldType) => Object.keys(fields).find((name) => fields[name]!.type === type)
  const choice = first('enum')
  const examples = [
    'created_at[gte]=2026-01-01',
    ...(choice ? [`${choice}[in]=${fields[choice]!.values!.slice(0, 2).join(',')}`] : []),
    `${first('reference') ?? 'owner_id'}[is_null]=true`,
    'tags[has]=vip',
    'custom_fields.tier=gold',
  ]
  return `Filters are parameters: ${examples.map((one) => `\`${one}\``).join(', ')}. Text is compared without regard to case; a whole one (eq, ne, in, nin) in the form in which a write keeps it: \`phone=%2B41 44 668 18 00\` finds +41446681800; a repeated parameter is a second filter. ${WHOLE_DAYS} ${CUSTOM_NOTE} ${SPEED_NOTE}`
}

const PATCH =
  'Absent is unchanged, null is cleared, custom_fields are merged key by key (a value that the record has already is always taken), an address is replaced as a whole. With If-Match and the ETag that was read, a change that came in between is answered 412.'

/** What a reference field does to links, where the kind has one. */
function primaryNote(entity: EntityName): string {
  const [name] = referencesOf(entities[entity])[0] ?? []
  if (name === undefined) return ''
  return `\`${name}\` is the primary link: setting it links, clearing it unlinks, and where it comes to name another record the link to the one before stays if it has a label or properties.`
}

/** Records of each kind: the same operations, with the kind's own shapes. */
export const objectRoutes: Route[] = entityNames.flatMap(routesOf)

function routesOf(entity: EntityName): Route[] {
  const { object, example } = entities[entity]
  const record = recordSchema(entity)
  const common = { tag: title(entity), params: recordParams }
  const path = `/objects/${entity}`
  const byId = `${path}/{entity_id}`
  return [
    route({
      method: 'GET',
      path,
      scope: `${entity}:read`,
      id: `list${title(entity)}`,
      tag: title(entity),
      summary: `List ${entity}`,
      description: listNote(entity),
      query: recordQuery(entity),
      response: { status: 200, schema: recordList(entity) },
      handler: async ({ query, tenant }) => {
        const offset = offsetOf(query)
        const page = await tenant((tx) => listRecords(tx, entity, { ...query, offset }))
        return presentList({ ...page, data: narrowed(page.data, query) })
      },
      otherIssues: ({ tenant }, { query }) => tenant((tx) => customQueryIssues(tx, entity, query)),
    }),
    route({
      method: 'POST',
      path,
      scope: `${entity}:write`,
      id: `create${title(object)}`,
      tag: title(entity),
      summary: `Create ${withArticle(object)}`,
      description: `${linkScopesNote(entity)} Each of the \`associations\` takes write on its kind.`.trim(),
      body: createSchema(entity),
      response: { status: 201, schema: record },
      example,
      etag: true,
      handler: async ({ body, caller, tenant, setHeader }) => {
        requireScopes(caller, linkScopes(entity, body, true))
        return tagged(setHeader, await tenant((tx) => createRecord(tx, entity, body, { sole: true })))
      },
      otherIssues: (request, { body }) => bodyIssues(request, entity, body),
    }),
    route({
      ...common,
      method: 'GET',
      path: byId,
      scope: `${entity}:read`,
      id: `get${title(object)}`,
      summary: `Read ${withArticle(object)}`,
      response: { status: 200, schema: record },
      etag: true,
      handler: async ({ params, tenant, setHeader }) => {
        const found = await tenant((tx) => {
          tx.last()
          return findRecord(tx, entity, params.entity_id)
        })
        // What is not there takes a second look, for it may have been merged.
        return tagged(setHeader, found ?? (await tenant((tx) => getRecord(tx, entity, params.entity_id))))
      },
    }),
    route({
      ...common,
      method: 'PATCH',
      path: byId,
      scope: `${entity}:write`,
      id: `update${title(object)}`,
      summary: `Change ${withArticle(object)}`,
      description: [PATCH, primaryNote(entity), linkScopesNote(entity)].filter(Boolean).join(' '),
      body: updateSchema(entity),
      response: { status: 200, schema: record },
      example: changeOf(example),
      etag: true,
      ifMatch: true,
      handler: async ({ params, body, headers, caller, tenant, setHeader }) => {
        requireScopes(caller, linkScopes(entity, body))
        const ifVersion = ifMatch(headers)
        return tagged(
          setHeader,
          await tenant((tx) => updateRecord(tx, entity, params.entity_id, body, { ifVersion, sole: true })),
        )
      },
      otherIssues: (request, { body }) => bodyIssues(request, entity, body, request.params.entity_id),
    }),
    route({
      ...common,
      method: 'DELETE',
      path: byId,
      scope: `${entity}:write`,
      id: `delete${title(object)}`,
      summary: `Delete ${withArticle(object)}`,
      response: {
        status: 200,
        schema: deletedSchema(entity),
      },
      ifMatch: true,
      handler: async ({ params, headers, tenant }) =>
        tenant((tx) => deleteRecord(tx, entity, params.entity_id, { ifVersion: ifMatch(headers) })),
    }),
  ]
}

/** A PATCH as an example: one field, and a custom field beside those that there are. */
function changeOf(example: Record<string, unknown>): object {
  const [first] = Object.entries(example)
  return { ...Object.fromEntries([first!]), tags: ['vip'], custom_fields: { tier: 'gold' } }
}

function deletedSchema(entity: EntityName): z.ZodType {
  const { object } = entities[entity]
  return z
    .object({
      id: z.uuid(),
      object: z.literal(object),
      deleted: z.literal(true),
      deleted_at: z.iso.datetime(),
    })
    .meta({ id: `Deleted${title(object)}` })
}

/** Of references only where the caller may link: to others it is not said what is there. */
const bodyIssues = (
  { caller, tenant }: Pick<RouteRequest, 'caller' | 'tenant'>,
  entity: EntityName,
  body: unknown,
  changes?: string,
) => {
  const mayLink = (to: EntityName) => allows(caller.scopes, `${to}:write`)
  return tenant((tx) => inputIssues(tx, entity, body, { changes, mayLink }))
}

/** What a list of records answers: `ContactList`. */
export function recordList(entity: EntityName) {
  return listEnvelope(listedSchema(entity), title(entities[entity].object))
}

/** The records with only the fields that were asked for. */
export function narrowed(records: AgxRecord[], { fields }: RecordQuery): object[] {
  if (!fields) return records
  const kept = ['object', 'id', ...fields]
  return records.map((record) => Object.fromEntries(kept.map((name) => [name, record[name]])))
}

export function tagged<T extends { version: number }>(setHeader: RouteRequest['setHeader'], record: T): T {
  setHeader('ETag', `"${record.version}"`)
  return record
}
