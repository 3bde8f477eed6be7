import { z } from 'zod'
import { decodeCursor, encodeCursor, queryHash } from '../../db/lists/cursor.ts'
import {
  createDefinition,
  deleteDefinition,
  getDefinition,
  listDefinitions,
  MAX_DEFINITIONS,
  updateDefinition,
} from '../../db/records/custom-fields/definitions.ts'
import type { NamedDefinition } from '../../db/records/model/custom-fields/types.ts'
import type { EntityName } from '../../db/records/model/kind.ts'
import { entityNames } from '../../db/records/model/kinds/index.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import {
  contradictionsIn,
  createBody,
  deletedSchema,
  deleteQuery,
  shown,
  updateBody,
} from './custom-field-shapes.ts'
import { tagged, title } from './objects.ts'

const params = z.object({ name: z.string() })

/** Definitions of the custom fields of each kind. */
export const customFieldRoutes: Route[] = entityNames.flatMap(routesOf)

function routesOf(entity: EntityName): Route[] {
  const present = (definition: NamedDefinition) => ({
    object: 'custom_field' as const,
    entity,
    ...definition,
  })
  const path = `/custom-fields/${entity}`
  const byName = { path: `${path}/{name}`, params, tag: 'Custom fields' }
  const kind = title(entity)
  return [
    route({
      method: 'GET',
      path,
      scope: `${entity}:read`,
      id: `list${kind}CustomFields`,
      tag: 'Custom fields',
      summary: `List the custom fields of ${entity}`,
      description: 'By name.',
      query: z.strictObject(pageControls),
      response: { status: 200, schema: listEnvelope(shown) },
      handler: async ({ query, tenant }) => {
        const definitions = await tenant((tx) => listDefinitions(tx, entity))
        return presentList(pageOf(entity, definitions.map(present), query))
      },
    }),
    route({
      method: 'POST',
      path,
      scope: `${entity}:write`,
      id: `create${kind}CustomField`,
      tag: 'Custom fields',
      summary: `Define a custom field of ${entity}`,
      description: `At most ${MAX_DEFINITIONS} of a kind. A key without a definition is accepted as a text, a number, true, false or a list of these, unless the organization's strict mode is on. Where records have values under the name already they must all be ones of the type; values that only need another form ("5" of a number) are rewritten, each record getting a new version. Else it is a 409 with examples, and nothing changes.`,
      body: createBody,
      response: { status: 201, schema: shown },
      example: {
        name: 'tier',
        type: 'select',
        label: 'Tier',
        options: ['gold', 'silver'],
        default: 'silver',
      },
      etag: true,
      handler: async ({ body: { name, ...input }, tenant, setHeader }) =>
        tagged(setHeader, present(await tenant((tx) => createDefinition(tx, entity, name, input)))),
      otherIssues: async (_, { body }) => contradictionsIn(body),
    }),
    route({
      ...byName,
      method: 'GET',
      scope: `${entity}:read`,
      id: `get${kind}CustomField`,
      summary: `Read the definition of a custom field of ${entity}`,
      response: { status: 200, schema: shown },
      etag: true,
      handler: async ({ params: { name }, tenant, setHeader }) =>
        tagged(setHeader, present(await tenant((tx) => getDefinition(tx, entity, name)))),
    }),
    route({
      ...byName,
      method: 'PATCH',
      scope: `${entity}:write`,
      id: `update${kind}CustomField`,
      summary: `Change the definition of a custom field of ${entity}`,
      description:
        'Absent is unchanged. No value is ever lost by it: another type, fewer options or `unique` are refused with 409 and examples while stored values contradict them; values that only need another form are rewritten, each record getting a new version. Deleted records are not looked at: one that is restored keeps the value that it had, until it is changed. The name never changes. Takes If-Match.',
      body: updateBody,
      response: { status: 200, schema: shown },
      example: { options: ['gold', 'silver', 'bronze'] },
      etag: true,
      ifMatch: true,
      handler: async ({ params: { name }, body, headers, tenant, setHeader }) => {
        const ifVersion = ifMatch(headers)
        return tagged(
          setHeader,
          present(await tenant((tx) => updateDefinition(tx, entity, name, body, ifVersion))),
        )
      },
    }),
    route({
      ...byName,
      method: 'DELETE',
      scope: `${entity}:write`,
      id: `delete${kind}CustomField`,
      summary: `Delete the definition of a custom field of ${entity}`,
      description:
        'The values stay in the records, as values without a definition, unless `delete_values=true`: then each record that has one is changed, and its history keeps what it was. Takes If-Match.',
      query: deleteQuery,
      response: {
        status: 200,
        schema: deletedSchema,
      },
      ifMatch: true,
      handler: async ({ params: { name }, query, headers, tenant }) => {
        const how = { ifVersion: ifMatch(headers), deleteValues: query.delete_values === 'true' }
        const deleted = await tenant((tx) => deleteDefinition(tx, entity, name, how))
        return { object: 'custom_field', entity, deleted: true, ...deleted }
      },
    }),
  ]
}

/** Definitions have no id; a cursor is the name that it follows. */
const NO_ID = '00000000-0000-0000-0000-000000000000'

function pageOf<T extends { name: string }>(
  entity: EntityName,
  all: T[],
  query: { limit: number; offset?: number | undefined; cursor?: string | undefined },
) {
  const offset = offsetOf(query)
  const hash = queryHash(['custom-fields', entity])
  const after = query.cursor ? decodeCursor(hash, query.cursor, () => true).value : null
  const rest = all.filter(({ name }) => after === null || name > after).slice(offset)
  const data = rest.slice(0, query.limit)
  const has_more = rest.length > data.length
  return {
    data,
    ...{ limit: query.limit, offset, has_more },
    next_cursor: has_more ? encodeCursor(hash, { value: data.at(-1)!.name, id: NO_ID }) : null,
    ...{ total: all.length, total_is_estimate: false },
  }
}
