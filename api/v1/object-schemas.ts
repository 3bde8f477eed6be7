import { z } from 'zod'
import { describeCustomField } from '../../db/model/records/custom-fields/describe.ts'
import type { FieldDescription } from '../../db/model/records/describe.ts'
import { describeKind } from '../../db/model/records/describe.ts'
import { kindNames, kinds } from '../../db/model/records/kinds/index.ts'
import {
  defaultOf,
  firstOpen,
  namesOf,
  type Pipeline,
  stageNames,
} from '../../db/model/records/pipelines/pipeline.ts'
import { listDefinitions } from '../../db/records/custom-fields/definitions.ts'
import { listPipelines } from '../../db/records/pipelines/pipelines.ts'
import { listEnvelope, wholeList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { allows } from '../http/scopes.ts'
import { definitionSchema } from './custom-field-shapes.ts'
import { tagOf, title } from './record-shapes.ts'

/** The kinds of records and the schema of each, for clients that do not know them in advance. */

const kind = z
  .object({
    object: z.literal('object_type'),
    entity: z.enum(kindNames).describe('The name in paths and scopes.'),
    singular: z.string().describe('The name in `object` of a record and in events.'),
    description: z.string(),
    field_count: z.int(),
    paths: z.object({ records: z.string(), schema: z.string() }).meta({ id: 'ObjectTypePaths' }),
    permissions: z
      .object({ read: z.boolean(), write: z.boolean() })
      .meta({ id: 'ObjectTypePermissions', description: 'The permissions of the key.' }),
  })
  .meta({ id: 'ObjectType' })

const field = z
  .object({
    name: z.string(),
    type: z.string(),
    description: z.string(),
    required: z.boolean(),
    read_only: z.boolean(),
    default: z.unknown().describe('The default; null if there is none or it depends on other fields.'),
    values: z.array(z.string()).nullable().describe('The accepted values.'),
    max: z.number().nullable().describe('The maximum length in characters, or the largest number.'),
    searchable: z.boolean().describe('Whether `q` searches the field.'),
    sortable: z.boolean(),
    operators: z.array(z.string()).describe('The operators of its filters.'),
    references: z.string().nullable().describe('The kind that the id refers to, or `users`.'),
  })
  .meta({ id: 'FieldSchema' })

const customField = definitionSchema
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
    name: z.string().describe('The key in `custom_fields`. Filters and sorts use `custom_fields.<name>`.'),
    searchable: z.boolean(),
    sortable: z.boolean(),
    operators: z.array(z.string()),
  })
  .meta({ id: 'CustomFieldSchema' })

const schema = z
  .object({
    object: z.literal('object_schema'),
    entity: z.enum(kindNames),
    singular: z.string(),
    description: z.string(),
    fields: z.array(field),
    custom_fields: z.array(customField).describe('The custom fields with a definition.'),
    upsert_keys: z.array(z.string()).describe('The fields that can be the key of an upsert.'),
    at_least_one_of: z
      .array(z.string())
      .describe('At least one of these fields is required; empty without such a rule.'),
    example: z.record(z.string(), z.unknown()).describe('A request body that creates a record.'),
  })
  .meta({ id: 'ObjectSchema' })

/** Computed once: kinds do not change at run time. */
const KINDS = kindNames.map(describeKind)

export const objectSchemaRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/objects',
    scope: 'any',
    id: 'listObjectTypes',
    tag: 'Records',
    summary: 'List the kinds of records',
    description: 'Lists every kind, with its paths and the permissions of the key.',
    response: { status: 200, schema: listEnvelope(kind) },
    handler: async ({ caller }) => {
      const data = KINDS.map(({ entity, singular, description, fields }) => {
        const records = `/v1/objects/${entity}`
        return {
          object: 'object_type',
          entity,
          singular,
          description,
          field_count: fields.length,
          paths: { records, schema: `${records}/schema` },
          permissions: {
            read: allows(caller.scopes, `${entity}:read`),
            write: allows(caller.scopes, `${entity}:write`),
          },
        }
      })
      return wholeList(data)
    },
  }),
  ...KINDS.map((kind) => {
    const { entity, singular } = kind
    return route({
      method: 'GET',
      path: `/objects/${entity}/schema`,
      scope: `${entity}:read`,
      id: `get${title(singular)}Schema`,
      tag: tagOf(entity),
      summary: `Retrieve the ${singular} schema`,
      description:
        'Returns the fields and the defined custom fields, with their types, accepted values, filter operators and sorts.',
      response: { status: 200, schema },
      handler: async ({ tenant }) => {
        const [definitions, pipelines] = await tenant((tx) =>
          Promise.all([listDefinitions(tx, entity), kinds[entity].hasPipelines ? listPipelines(tx) : []]),
        )
        const unique = definitions.filter((definition) => definition.unique)
        return {
          object: 'object_schema',
          ...kind,
          fields: withPlaces(kind.fields, pipelines),
          custom_fields: definitions.map(describeCustomField),
          upsert_keys: [...kind.upsert_keys, ...unique.map(({ name }) => `custom_fields.${name}`)],
        }
      },
    })
  }),
]

/** The fields with the organization's pipelines, and the stages of all of them. */
function withPlaces(fields: FieldDescription[], pipelines: readonly Pipeline[]): FieldDescription[] {
  if (pipelines.length === 0) return fields
  const first = defaultOf(pipelines)
  const places: Record<string, Pick<FieldDescription, 'values' | 'default'>> = {
    pipeline: { values: namesOf(pipelines), default: first.name },
    stage: { values: stageNames(pipelines), default: firstOpen(first).name },
  }
  return fields.map((field) => ({ ...field, ...places[field.name] }))
}
