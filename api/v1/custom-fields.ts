import { z } from 'zod'
import type { NamedDefinition } from '../../db/model/records/custom-fields/types.ts'
import type { KindName } from '../../db/model/records/kind.ts'
import {
  createDefinition,
  deleteDefinition,
  getDefinition,
  listDefinitions,
  MAX_DEFINITIONS,
  updateDefinition,
} from '../../db/records/custom-fields/definitions.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, pageByName, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import {
  contradictionsIn,
  createBody,
  definitionSchema,
  deletedField,
  deleteQuery,
  updateBody,
} from './custom-field-shapes.ts'
import { kindParams, withETag } from './record-shapes.ts'

const nameParams = kindParams.extend({ name: z.string().describe('The name of the custom field.') })
const tag = 'Custom fields'
const path = '/custom-fields/{entity}'
const byName = { path: `${path}/{name}`, params: nameParams, tag }
const reads = ({ entity }: { entity: KindName }) => [`${entity}:read` as const]
const writes = ({ entity }: { entity: KindName }) => [`${entity}:write` as const]

const present = (kind: KindName, definition: NamedDefinition) => ({
  object: 'custom_field' as const,
  entity: kind,
  ...definition,
  sensitive: definition.sensitive ?? false,
})

/** Definitions of the custom fields of each kind. */
export const customFieldRoutes: Route[] = [
  route({
    method: 'GET',
    path,
    scope: reads,
    id: 'listCustomFields',
    tag,
    summary: 'List the custom fields of a kind',
    description: 'Lists the definitions, sorted by name.',
    params: kindParams,
    query: z.strictObject(pageControls),
    response: { status: 200, schema: listEnvelope(definitionSchema) },
    handler: async ({ params: { entity }, query, tenant }) => {
      const definitions = await tenant((tx) => listDefinitions(tx, entity))
      return presentList(
        pageByName(
          ['custom-fields', entity],
          definitions.map((one) => present(entity, one)),
          query,
        ),
      )
    },
  }),
  route({
    method: 'POST',
    path,
    scope: writes,
    id: 'createCustomField',
    grows: true,
    tag,
    summary: 'Create a custom field',
    description: `Defines a custom field of a kind; a kind has at most ${MAX_DEFINITIONS}. A key without a definition accepts text, numbers, booleans and lists of them, unless the organization has strict mode on. If records already have values under the name, all values must fit the type. Values in another form (\`"5"\` for a number) are rewritten, and the version of each such record increases. Otherwise the response is 409 with examples, and nothing changes.`,
    params: kindParams,
    body: createBody,
    response: { status: 201, schema: definitionSchema },
    example: {
      name: 'tier',
      type: 'select',
      label: 'Tier',
      options: ['gold', 'silver'],
      default: 'silver',
    },
    etag: true,
    handler: async ({ params: { entity }, body: { name, ...input }, tenant, setHeader }) =>
      withETag(setHeader, present(entity, await tenant((tx) => createDefinition(tx, entity, name, input)))),
    otherIssues: async (_, { body }) => contradictionsIn(body),
  }),
  route({
    ...byName,
    method: 'GET',
    scope: reads,
    id: 'getCustomField',
    summary: 'Retrieve a custom field',
    response: { status: 200, schema: definitionSchema },
    etag: true,
    handler: async ({ params: { entity, name }, tenant, setHeader }) =>
      withETag(setHeader, present(entity, await tenant((tx) => getDefinition(tx, entity, name)))),
  }),
  route({
    ...byName,
    method: 'PATCH',
    scope: writes,
    id: 'updateCustomField',
    summary: 'Update a custom field',
    description:
      'Absent members are unchanged; `name` cannot change. Stored values are never lost: another type, fewer options or `unique` is refused with 409 and examples if stored values contradict it. Values in another form are rewritten, and the version of each such record increases. Deleted records are not checked: a restored record keeps its value until it is changed.',
    body: updateBody,
    response: { status: 200, schema: definitionSchema },
    example: { options: ['gold', 'silver', 'bronze'] },
    etag: true,
    ifMatch: true,
    handler: async ({ params: { entity, name }, body, headers, tenant, setHeader }) => {
      const ifVersion = ifMatch(headers)
      const updated = await tenant((tx) => updateDefinition(tx, entity, name, body, ifVersion))
      return withETag(setHeader, present(entity, updated))
    },
  }),
  route({
    ...byName,
    method: 'DELETE',
    scope: writes,
    id: 'deleteCustomField',
    summary: 'Delete a custom field',
    description:
      'Deletes the definition. The records keep their values, without a definition, unless `delete_values=true`: then each record with a value is changed, and its history keeps the value.',
    query: deleteQuery,
    response: deletedField,
    ifMatch: true,
    handler: async ({ params: { entity, name }, query, headers, tenant }) => {
      const how = { ifVersion: ifMatch(headers), deleteValues: query.delete_values === 'true' }
      const deleted = await tenant((tx) => deleteDefinition(tx, entity, name, how))
      return { object: 'custom_field', entity, deleted: true, ...deleted }
    },
  }),
]
