import { z } from 'zod'
import { listDefinitions } from '../../db/records/custom-fields/definitions.ts'
import { describeCustomField } from '../../db/records/model/custom-fields/describe.ts'
import { describeKind } from '../../db/records/model/describe.ts'
import { withArticle } from '../../db/records/model/kind.ts'
import { entityNames } from '../../db/records/model/kinds/index.ts'
import { listEnvelope, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { allows } from '../http/scopes.ts'
import { shown } from './custom-field-shapes.ts'
import { title } from './objects.ts'

/** What kinds of records there are, and what each consists of: all that a client needs to know beforehand. */

const kind = z
  .object({
    object: z.literal('object_type'),
    entity: z.enum(entityNames).describe('Its name in paths and scopes.'),
    singular: z.string().describe('Its name as `object` of a record, and in events.'),
    description: z.string(),
    field_count: z.int(),
    paths: z.object({ records: z.string(), schema: z.string() }),
    permissions: z.object({ read: z.boolean(), write: z.boolean() }).describe('What the key may do.'),
  })
  .meta({ id: 'ObjectType' })

const field = z.object({
  name: z.string(),
  type: z.string(),
  description: z.string(),
  required: z.boolean(),
  read_only: z.boolean(),
  default: z.unknown().describe('null also where it depends on others, as the description then says.'),
  values: z.array(z.string()).nullable().describe('All that it can be.'),
  max: z.number().nullable().describe('Longest text in characters, or largest number.'),
  searchable: z.boolean().describe('Whether `q` finds it.'),
  sortable: z.boolean(),
  operators: z.array(z.string()).describe('Of its filters: `stage=won`, `amount[gte]=1000`.'),
  references: z.string().nullable().describe('What an id in it belongs to: a kind, or `users`.'),
})

const customField = shown
  .pick({
    type: true,
    label: true,
    description: true,
    required: true,
    unique: true,
    options: true,
    default: true,
  })
  .extend({
    name: z.string().describe('The key in `custom_fields`; as filter and sort field `custom_fields.<name>`.'),
    searchable: z.boolean(),
    sortable: z.boolean(),
    operators: z.array(z.string()),
  })

const schema = z
  .object({
    object: z.literal('object_schema'),
    entity: z.enum(entityNames),
    singular: z.string(),
    description: z.string(),
    fields: z.array(field),
    custom_fields: z.array(customField).describe('Those that have a definition.'),
    upsert_keys: z.array(z.string()).describe('The fields by which an upsert finds a record.'),
    at_least_one_of: z.array(z.string()).describe('One of these must be there; empty without such a rule.'),
    example: z.record(z.string(), z.unknown()).describe('A body of POST.'),
  })
  .meta({ id: 'ObjectSchema' })

/** Worked out once: a kind does not change while the process runs. */
const KINDS = entityNames.map(describeKind)

export const objectSchemaRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/objects',
    scope: 'any',
    id: 'listObjectTypes',
    tag: 'Objects',
    summary: 'List the kinds of records',
    description: 'Every kind, with its paths and what the key may do with its records.',
    response: { status: 200, schema: listEnvelope(kind) },
    handler: async ({ caller }) => {
      const data = KINDS.map(({ entity, singular, description, fields }) => {
        const records = `/v1/objects/${entity}`
        return {
          object: 'object_type',
          ...{ entity, singular, description, field_count: fields.length },
          paths: { records, schema: `${records}/schema` },
          permissions: {
            read: allows(caller.scopes, `${entity}:read`),
            write: allows(caller.scopes, `${entity}:write`),
          },
        }
      })
      const whole = { limit: data.length, offset: 0, has_more: false, next_cursor: null }
      return presentList({ data, ...whole, total: data.length, total_is_estimate: false })
    },
  }),
  ...KINDS.map((kind) => {
    const { entity, singular } = kind
    return route({
      method: 'GET',
      path: `/objects/${entity}/schema`,
      scope: `${entity}:read`,
      id: `get${title(singular)}Schema`,
      tag: title(entity),
      summary: `What ${withArticle(singular)} consists of`,
      description:
        'Its fields and the defined custom fields, with what each can hold and how it can be filtered and sorted by.',
      response: { status: 200, schema },
      handler: async ({ tenant }) => {
        const definitions = await tenant((tx) => listDefinitions(tx, entity))
        const unique = definitions.filter((definition) => definition.unique)
        return {
          object: 'object_schema',
          ...kind,
          custom_fields: definitions.map(describeCustomField),
          upsert_keys: [...kind.upsert_keys, ...unique.map(({ name }) => `custom_fields.${name}`)],
        }
      },
    })
  }),
]
