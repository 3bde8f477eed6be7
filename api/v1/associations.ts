import { z } from 'zod'
import { link, listRelated, unlink } from '../../db/records/associations.ts'
import { recordExample } from '../../db/records/model/examples.ts'
import { type EntityName, withArticle } from '../../db/records/model/kind.ts'
import { entities, entityNames } from '../../db/records/model/kinds/index.ts'
import { listedSchema } from '../../db/records/model/schemas.ts'
import { listEnvelope, offsetOf, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { narrowed, recordParams, title } from './objects.ts'
import { customQueryIssues, relatedQuery } from './record-query.ts'

const end = z.object({ object: z.string(), id: z.uuid() })
const pair = { object: z.literal('association'), from: end, to: end }
const CONTENT_EXAMPLE = {
  label: 'decision maker',
  properties: { since: '2026-01-31' },
  created_at: '2026-01-31T09:30:00.000Z',
}
const content = z
  .object({
    label: z.string().nullable(),
    properties: z.record(z.string(), z.unknown()),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'AssociationContent', examples: [CONTENT_EXAMPLE] })
const association = z.object({ ...pair, ...content.shape }).meta({ id: 'Association' })
const unlinked = z.object({ ...pair, deleted: z.literal(true) }).meta({ id: 'UnlinkedAssociation' })

const RELATED =
  'Takes everything that the list of the kind takes. Each record has what its link says as `association`, the same from both ends; with `fields`, where they name it.'

/** Made once, for the lists of six kinds share each. */
const relatedLists = Object.fromEntries(
  entityNames.map((entity): [EntityName, z.ZodType] => {
    const kind = entities[entity]
    const item = listedSchema(entity)
      .extend({ association: content.optional() })
      .meta({
        id: `Related${title(kind.object)}`,
        examples: [{ ...recordExample(kind), association: CONTENT_EXAMPLE }],
      })
    return [entity, listEnvelope(item)]
  }),
) as Record<EntityName, z.ZodType>

const targetParams = recordParams.extend({
  target: z.enum(entityNames as [EntityName, ...EntityName[]]),
  target_id: z.uuid().toLowerCase(),
})
const properties = z
  .object({ label: z.string().max(64).nullish().describe('What the one is to the other.') })
  .catchall(z.unknown())
  .refine((given) => JSON.stringify(given).length <= 16_384, 'is larger than 16 KiB')
  .meta({ id: 'AssociationProperties' })
  .default({})

/** Links between records, seen from both ends, and the records at the other end. */
export const associationRoutes: Route[] = entityNames.flatMap((entity) => [
  ...linkRoutes(entity),
  ...entityNames.map((target) => relatedRoute(entity, target)),
])

function linkRoutes(entity: EntityName): Route[] {
  const { object } = entities[entity]
  const common = {
    path: `/objects/${entity}/{entity_id}/associations/{target}/{target_id}`,
    // A link can set a reference field at either end.
    scope: ({ target }: { target: EntityName }) => [`${entity}:write` as const, `${target}:write` as const],
    tag: title(entity),
    params: targetParams,
  }
  return [
    route({
      ...common,
      method: 'POST',
      id: `link${title(object)}`,
      summary: `Link ${withArticle(object)} with another record`,
      description:
        'Idempotent. The optional body is kept as the properties of the link, its label apart; an empty one keeps what there is.',
      body: properties,
      example: { label: 'decision maker', since: '2026-01-31' },
      response: {
        status: 200,
        schema: association,
      },
      handler: async ({ params: { entity_id, target, target_id }, body, tenant }) => ({
        object: 'association',
        ...(await tenant((tx) => link(tx, entity, entity_id, target, target_id, body))),
      }),
    }),
    route({
      ...common,
      method: 'DELETE',
      id: `unlink${title(object)}`,
      summary: `Unlink ${withArticle(object)} from another record`,
      response: {
        status: 200,
        schema: unlinked,
      },
      handler: async ({ params: { entity_id, target, target_id }, tenant }) => ({
        object: 'association',
        ...(await tenant((tx) => unlink(tx, entity, entity_id, target, target_id))),
      }),
    }),
  ]
}

function relatedRoute(entity: EntityName, target: EntityName): Route {
  const { object } = entities[entity]
  return route({
    method: 'GET',
    path: `/objects/${entity}/{entity_id}/${target}`,
    scope: [...new Set([`${entity}:read` as const, `${target}:read` as const])],
    id: `list${title(target)}Of${title(object)}`,
    tag: title(entity),
    summary: `List the ${target} that ${withArticle(object)} is linked with`,
    description: RELATED,
    params: recordParams,
    query: relatedQuery(target),
    response: { status: 200, schema: relatedLists[target] },
    handler: async ({ params, query, tenant }) => {
      const offset = offsetOf(query)
      const page = await tenant((tx) =>
        listRelated(tx, entity, params.entity_id, target, { ...query, offset }),
      )
      return presentList({ ...page, data: narrowed(page.data, query) })
    },
    otherIssues: ({ tenant }, { query }) => tenant((tx) => customQueryIssues(tx, target, query)),
  })
}
