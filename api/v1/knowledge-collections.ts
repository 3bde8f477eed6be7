import { z } from 'zod'
import {
  type Collection,
  createCollection,
  deleteCollection,
  embedCollection,
  getCollection,
  listCollections,
  updateCollection,
} from '../../db/knowledge/collections.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { DELETED_AT, deletion } from '../http/deletion.ts'
import { ifMatch } from '../http/if-match.ts'
import { listEnvelope, offsetOf, pageControls, presentList } from '../http/list-query.ts'
import { type Route, route } from '../http/route.ts'
import type { Scope } from '../http/scopes.ts'
import { collectionCreate, collectionSchema, collectionUpdate, embeddingBody } from './knowledge-shapes.ts'
import { withETag } from './record-shapes.ts'

const tag = 'Knowledge base'
const path = '/knowledge/collections'
export const collectionParams = z.object({
  collection_id: z.uuid().toLowerCase().describe('The id of the collection.'),
})
const byId = { path: `${path}/{collection_id}`, params: collectionParams, tag }

const embedding = { path: `${path}/{collection_id}/embedding`, params: collectionParams, tag }
/** It sends the passages to another service, as an outgoing webhook sends records. */
const SENDS: Scope[] = ['knowledge:write', 'webhooks:write']

const present = (collection: Collection) => ({ object: 'knowledge_collection' as const, ...collection })

export const knowledgeCollectionRoutes: Route[] = [
  route({
    method: 'GET',
    path,
    scope: 'knowledge:read',
    id: 'listKnowledgeCollections',
    tag,
    summary: 'List collections',
    description: 'Newest first.',
    query: z.strictObject({
      ...pageControls,
      name: z
        .string()
        .trim()
        .max(200)
        .optional()
        .describe('The collection with this name, compared case-insensitively.'),
    }),
    response: { status: 200, schema: listEnvelope(collectionSchema) },
    handler: ({ query, tenant }) =>
      tenant(async (tx) => {
        const page = await listCollections(tx, query.name, { ...query, offset: offsetOf(query) })
        return presentList({ ...page, data: page.data.map(present) })
      }),
  }),
  route({
    method: 'POST',
    path,
    scope: 'knowledge:write',
    id: 'createKnowledgeCollection',
    grows: true,
    tag,
    summary: 'Create a collection',
    description: `A collection holds documents of one language. An organization has at most ${KNOWLEDGE.collections}.`,
    body: collectionCreate,
    response: { status: 201, schema: collectionSchema },
    example: { name: 'Help center', description: 'Answers for customers', language: 'english' },
    etag: true,
    handler: async ({ body, tenant, setHeader }) =>
      withETag(setHeader, present(await tenant((tx) => createCollection(tx, body)))),
  }),
  route({
    ...byId,
    method: 'GET',
    scope: 'knowledge:read',
    id: 'getKnowledgeCollection',
    summary: 'Retrieve a collection',
    response: { status: 200, schema: collectionSchema },
    etag: true,
    handler: async ({ params, tenant, setHeader }) =>
      withETag(setHeader, present(await tenant((tx) => getCollection(tx, params.collection_id)))),
  }),
  route({
    ...byId,
    method: 'PATCH',
    scope: 'knowledge:write',
    id: 'updateKnowledgeCollection',
    summary: 'Update a collection',
    description: `Another \`language\` indexes the documents again, which is refused with 409 above ${KNOWLEDGE.passagesToIndex} passages.`,
    body: collectionUpdate,
    response: { status: 200, schema: collectionSchema },
    example: { description: 'Answers for customers and partners' },
    etag: true,
    ifMatch: true,
    handler: async ({ params, body, headers, tenant, setHeader }) => {
      const accepted = ifMatch(headers)
      const updated = await tenant((tx) => updateCollection(tx, params.collection_id, body, accepted))
      return withETag(setHeader, present(updated))
    },
  }),
  route({
    ...byId,
    method: 'DELETE',
    scope: 'knowledge:write',
    id: 'deleteKnowledgeCollection',
    summary: 'Delete a collection',
    description: 'Deletes the collection with all its documents, permanently.',
    response: deletion('knowledge_collection', { id: z.uuid(), ...DELETED_AT }),
    ifMatch: true,
    handler: async ({ params: { collection_id: id }, headers, tenant }) => {
      const accepted = ifMatch(headers)
      await tenant((tx) => deleteCollection(tx, id, accepted))
      return { object: 'knowledge_collection', id, deleted: true, deleted_at: new Date().toISOString() }
    },
  }),
  route({
    ...embedding,
    method: 'PUT',
    scope: SENDS,
    id: 'setKnowledgeEmbedding',
    grows: true,
    summary: 'Set the embedding of a collection',
    description:
      'How to make the vectors that `mode` vector and hybrid of the search compare: by any OpenAI-compatible service, to which all passages are sent, now and when they change. `embedding` of the collection tells the progress. Another `model`, server or length makes all vectors again; the same settings repeat what failed.',
    body: embeddingBody,
    response: { status: 200, schema: collectionSchema },
    example: {
      base_url: 'https://api.openai.com/v1',
      model: 'text-embedding-3-small',
      dimensions: 512,
      api_key: 'sk-example',
    },
    etag: true,
    ifMatch: true,
    handler: async ({ params: { collection_id: id }, body, headers, deps, tenant, setHeader }) => {
      const accepted = ifMatch(headers)
      const set = await tenant((tx) => embedCollection(tx, deps.secretsKey, id, body, accepted))
      return withETag(setHeader, present(set))
    },
  }),
  route({
    ...embedding,
    method: 'DELETE',
    scope: SENDS,
    id: 'deleteKnowledgeEmbedding',
    summary: 'Remove the embedding of a collection',
    description: 'Deletes its vectors and the key of the service.',
    response: { status: 200, schema: collectionSchema },
    etag: true,
    ifMatch: true,
    handler: async ({ params: { collection_id: id }, headers, deps, tenant, setHeader }) => {
      const accepted = ifMatch(headers)
      const set = await tenant((tx) => embedCollection(tx, deps.secretsKey, id, null, accepted))
      return withETag(setHeader, present(set))
    },
  }),
]
