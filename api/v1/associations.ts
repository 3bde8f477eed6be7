import { z } from 'zod'
import type { KindName } from '../../db/model/records/kind.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { link, listRelated, unlink } from '../../db/records/associations.ts'
import { withExpanded } from '../../db/records/expand.ts'
import { deletion } from '../http/deletion.ts'
import { listEnvelope, offsetOf, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { associationContent } from './association-shape.ts'
import { expandScopes, filterScopes } from './filter-scopes.ts'
import { customQueryIssues, relatedParameters, relatedQuery } from './record-query.ts'
import { kindParams, listItem, recordParams, selectFields } from './record-shapes.ts'

const relatedParams = recordParams.extend({
  ...kindParams.shape,
  target: z.enum(kindNames).describe('The kind of the other record.'),
})
const linkParams = relatedParams.extend({
  target_id: z.uuid().toLowerCase().describe('The id of the other record.'),
})

const end = z.object({ object: z.string(), id: z.uuid() }).meta({ id: 'AssociationEnd' })
const pair = { object: z.literal('association'), from: end, to: end }
const association = z.object({ ...pair, ...associationContent.shape }).meta({ id: 'Association' })
const body = z
  .object({ label: z.string().max(64).nullish().describe('The role of the other record.') })
  .catchall(z.unknown())
  .refine((given) => JSON.stringify(given).length <= 16_384, 'is larger than 16 KiB')
  .meta({ id: 'AssociationCreate' })
  .default({})

const tag = 'Records'
const path = '/objects/{entity}/{entity_id}/associations/{target}/{target_id}'
/** The scopes of a write to both kinds: an association can set a reference field of either record. */
const writesBoth = ({ entity, target }: { entity: KindName; target: KindName }) => [
  ...new Set([`${entity}:write` as const, `${target}:write` as const]),
]

/** Associations between records of any two kinds, and the lists of associated records. */
export const associationRoutes: Route[] = [
  route({
    method: 'POST',
    path,
    scope: writesBoth,
    id: 'createAssociation',
    grows: true,
    tag,
    summary: 'Associate two records',
    description:
      'Idempotent: two records have at most one association, whichever end created it. A body with members replaces `label` and `properties`; an empty body keeps them. Sets an empty reference field between the two kinds, such as `company_id`.',
    params: linkParams,
    body,
    example: { label: 'decision maker', since: '2026-01-31' },
    response: { status: 200, schema: association },
    handler: async ({ params: { entity, entity_id, target, target_id }, body, tenant }) => ({
      object: 'association',
      ...(await tenant((tx) => link(tx, entity, entity_id, target, target_id, body))),
    }),
  }),
  route({
    method: 'DELETE',
    path,
    scope: writesBoth,
    id: 'deleteAssociation',
    tag,
    summary: 'Delete the association of two records',
    description: 'Also clears a reference field that names the other record. 404 if they are not associated.',
    params: linkParams,
    response: deletion('association', { from: end, to: end }),
    handler: async ({ params: { entity, entity_id, target, target_id }, tenant }) => ({
      object: 'association',
      ...(await tenant((tx) => unlink(tx, entity, entity_id, target, target_id))),
    }),
  }),
  route({
    method: 'GET',
    path: '/objects/{entity}/{entity_id}/{target}',
    scope: ({ entity, target }) => [...new Set([`${entity}:read` as const, `${target}:read` as const])],
    id: 'listAssociatedRecords',
    tag,
    summary: 'List associated records',
    description:
      'Lists the records of the kind `target` that are associated with a record. Takes the parameters of the list of that kind. Each item has its `association`; with `fields`, only if they name it.',
    params: relatedParams,
    query: { of: ({ target }) => relatedQuery(target), documented: relatedParameters },
    response: {
      status: 200,
      schema: listEnvelope(z.union(kindNames.map(listItem)), 'AssociatedRecord'),
    },
    handler: async ({ params: { entity, entity_id, target }, query, requireScopes, tenant }) => {
      requireScopes([...filterScopes(query), ...expandScopes(target, query.expand)])
      const offset = offsetOf(query)
      const page = await tenant(async (tx) => {
        const found = await listRelated(tx, entity, entity_id, target, { ...query, offset })
        return { ...found, data: await withExpanded(tx, target, found.data, query.expand) }
      })
      return presentList({ ...page, data: selectFields(page.data, query) })
    },
    otherIssues: ({ params: { target }, tenant }, { query }) =>
      tenant((tx) => customQueryIssues(tx, target, query)),
  }),
]
