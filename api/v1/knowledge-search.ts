import { z } from 'zod'
import { MAX_REACH, searchPassages } from '../../db/knowledge/search.ts'
import { match, mode, QUERY_SYNTAX, query } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { listEnvelope, offsetOf, pageControls, pageOffset, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import { passageSchema, tagsParameter } from './knowledge-shapes.ts'

export const knowledgeSearchRoutes: Route[] = [
  route({
    method: 'GET',
    path: '/knowledge/search',
    scope: 'knowledge:read',
    id: 'searchKnowledge',
    tag: 'Knowledge base',
    summary: 'Search the knowledge base',
    description: `Lists the passages that match a query, best first. Words of the title have the highest weight, followed by words of headings, of tags and of the text. ${QUERY_SYNTAX} Pages reach the first ${MAX_REACH} passages, with \`mode\` vector or hybrid the first ${KNOWLEDGE.fused}; \`total\` is null.`,
    query: z.strictObject({
      q: query.describe('The query: words, or a question.'),
      match,
      mode,
      collection_id: z.uuid().toLowerCase().optional().describe('The collection to search. Default: all.'),
      tags: tagsParameter,
      ...pageControls,
      offset: pageOffset(MAX_REACH),
    }),
    response: { status: 200, schema: listEnvelope(passageSchema) },
    handler: async ({ query: { limit, offset, cursor, ...search }, caller, deps, signal, tenant }) => {
      const vectors = await deps.queryVectors.of(search, caller.organization.id, tenant, { signal })
      const at = { limit, offset: offsetOf({ offset, cursor }), cursor }
      const page = await tenant((tx) => searchPassages(tx, search, at, vectors))
      const data = page.data.map((passage) => ({ object: 'knowledge_passage' as const, ...passage }))
      return presentList({ ...page, data })
    },
  }),
]
