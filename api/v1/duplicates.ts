import { z } from 'zod'
import { kinds } from '../../db/model/records/kinds/index.ts'
import { DUPLICATES_BY, type DuplicateKind, listDuplicates, MAX_SHOWN } from '../../db/records/duplicates.ts'
import { listEnvelope, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { listItem, tagOf, title } from './record-shapes.ts'

/** Records that may be duplicates, to be merged. */
export const duplicateRoutes: Route[] = (Object.keys(DUPLICATES_BY) as DuplicateKind[]).map(routeOf)

function routeOf(kind: DuplicateKind): Route {
  const ways = DUPLICATES_BY[kind]
  const { object } = kinds[kind]
  const group = z
    .object({
      object: z.literal('duplicate_group'),
      by: z.enum(ways),
      value: z.string().describe('What they have in common, in lower case.'),
      count: z.int(),
      records: z.array(listItem(kind)).describe(`The oldest first, at most ${MAX_SHOWN}.`),
    })
    .meta({ id: `${title(object)}Duplicates` })
  return route({
    method: 'GET',
    path: `/objects/${kind}/duplicates`,
    scope: `${kind}:read`,
    id: `list${title(object)}Duplicates`,
    tag: tagOf(kind),
    summary: `List ${kind} that may be duplicates`,
    description:
      'Groups of records with an equal value, sorted by it, to be merged. A page compares a bounded number of records: it may have fewer groups than `limit`, or none, while `has_more` is true. `total` is null.',
    query: z.strictObject({
      by: z.enum(ways).default(ways[0]).describe('What must be equal.'),
      limit: pageControls.limit,
      cursor: pageControls.cursor,
    }),
    response: { status: 200, schema: listEnvelope(group) },
    handler: async ({ query: { by, ...page }, tenant }) => {
      const found = await tenant((tx) => listDuplicates(tx, kind, by, page))
      return presentList({
        ...found,
        data: found.data.map((one) => ({ object: 'duplicate_group' as const, ...one })),
      })
    },
  })
}
