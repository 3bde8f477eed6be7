import { z } from 'zod'
import { collectionName, documentFields } from '../shared/knowledge.ts'
import { defineNode } from './define.ts'

export const knowledgeAdd = defineNode({
  type: 'knowledge_add',
  engine: 6,
  category: 'data',
  title: 'Add to the knowledge base',
  alsoCalled: [
    'add_knowledge',
    'add_document',
    'create_document',
    'knowledge_create',
    'knowledge_upsert',
    'kb_add',
    'index_document',
    'upsert_document',
    'vector_upsert',
    'embed',
  ],
  description:
    'Adds a document to a collection of the knowledge base, where knowledge_search and the API find it at once. A document is added once per run, node and item; retries of the run replace it. With `external_id`, it replaces the document of the collection with the same `external_id`, in every run.',
  effect: 'write',
  effects: ['knowledge'],
  scopes: () => ['knowledge:write'],
  config: z.strictObject({
    collection: collectionName.describe('The name or the id of the collection.'),
    title: documentFields.title,
    body: documentFields.body,
    format: documentFields.format.default('text'),
    tags: documentFields.tags.default([]),
    source_url: documentFields.source_url.nullable().default(null),
    external_id: documentFields.external_id.nullable().default(null),
  }),
  output: z.strictObject({
    id: z.string().describe('The id of the document.'),
    collection_id: z.string(),
    external_id: z.string().nullable(),
    title: z.string(),
    passages: z.int().describe('The number of passages of the document.'),
    version: z.int().describe('Increases with each change; equal values change nothing.'),
    created: z
      .boolean()
      .describe('Whether this node created the document; false if it replaced an existing one.'),
  }),
  handles: () => [{ name: 'success', description: 'The document is stored and can be found.' }],
  example: {
    config: {
      collection: 'Help center',
      title: 'Refunds',
      body: '{{ inputs.text }}',
      format: 'markdown',
      tags: ['billing'],
      external_id: 'refunds',
    },
    inputs: { inputs: { text: '# Refunds\n\nRefunds take five days.' } },
    output: {
      id: '019a0000-0000-7000-8000-000000000001',
      collection_id: '019a0000-0000-7000-8000-000000000002',
      external_id: 'refunds',
      title: 'Refunds',
      passages: 1,
      version: 1,
      created: true,
    },
  },
  run: async ({ collection, ...document }, { knowledge }) => ({
    output: await knowledge.add(collection, document),
  }),
})
