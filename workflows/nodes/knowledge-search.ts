import { z } from 'zod'
import type { KnowledgePassage } from '../effects/knowledge.ts'
import { collectionName, match, mode, QUERY_SYNTAX, query, tags } from '../shared/knowledge.ts'
import { KNOWLEDGE } from '../shared/limits.ts'
import { defineNode } from './define.ts'
import { conditionsIn, leftOutConditions } from './left-out-conditions.ts'

export const knowledgeSearch = defineNode({
  type: 'knowledge_search',
  engine: 6,
  laterUses: [{ engine: 9, isUsed: ({ mode }) => mode !== undefined }],
  category: 'data',
  title: 'Search the knowledge base',
  alsoCalled: [
    'knowledge',
    'search_knowledge',
    'knowledge_base',
    'kb',
    'kb_search',
    'rag',
    'retrieval',
    'retrieve',
    'vector_search',
    'vector_store',
    'semantic_search',
    'document_search',
    'search_documents',
    'faq',
  ],
  description:
    'Finds the passages of the knowledge base that match a question or words, best first; `output.text`, with their titles and sources, is context for an ai_prompt. Without a match, `count` is 0 and `text` is empty: it is not an error.',
  // Another mode calls the endpoint of the embedding. A placeholder may name one.
  effect: ({ mode = 'text' }) => (mode === 'text' ? 'read' : 'external'),
  effects: ['knowledge'],
  scopes: () => ['knowledge:read'],
  config: z.strictObject({
    q: query.describe(`The words or the question to look for. ${QUERY_SYNTAX}`),
    collection: collectionName
      .optional()
      .describe('The name or the id of the collection to search. Default: all collections.'),
    tags: tags.optional().describe('Only documents that have all of these tags.'),
    match,
    mode,
    limit: z.int().min(1).max(KNOWLEDGE.page).default(5).describe('The most passages.'),
  }),
  check: ({ collection, tags }) =>
    leftOutConditions([...conditionsIn('collection', collection), ...conditionsIn('tags', tags)]),
  output: z.strictObject({
    passages: z.array(
      z.strictObject({
        document_id: z.string(),
        collection_id: z.string(),
        title: z.string(),
        heading: z.string().describe('The headings above the passage.'),
        text: z.string(),
        score: z.number().describe('From 0 to 1; with `mode` text above 0.5 if the passage has every word.'),
        match: z
          .enum(['all', 'any', 'vector'])
          .describe('Whether the passage has all words of `q`, or some; `vector`: only its meaning is near.'),
        tags: z.array(z.string()),
        source_url: z.string().nullable(),
      }),
    ),
    count: z.int().describe('The number of passages.'),
    has_more: z.boolean(),
    text: z.string().describe('All passages as one text, numbered, with their titles and sources.'),
  }),
  handles: () => [{ name: 'success', description: 'The search is done, also if it found nothing.' }],
  example: {
    config: { q: '{{ inputs.question }}', collection: 'Help center', limit: 3 },
    inputs: { inputs: { question: 'How long do refunds take?' } },
    output: {
      passages: [
        {
          document_id: '019a0000-0000-7000-8000-000000000001',
          collection_id: '019a0000-0000-7000-8000-000000000002',
          title: 'Payments',
          heading: 'Refunds',
          text: 'Refunds take five days.',
          score: 0.62,
          match: 'all',
          tags: ['billing'],
          source_url: 'https://help.example.com/payments',
        },
      ],
      count: 1,
      has_more: false,
      text: '[1] Payments > Refunds (https://help.example.com/payments)\nRefunds take five days.',
    },
  },
  async run(config, { knowledge }) {
    const { passages, has_more } = await knowledge.search(config)
    const text = passages.map((passage, i) => `[${i + 1}] ${nameOf(passage)}\n${passage.text}`).join('\n\n')
    return { output: { passages, count: passages.length, has_more, text } }
  },
})

const nameOf = ({ title, heading, source_url }: KnowledgePassage) =>
  [
    title,
    ...(heading === '' ? [] : ['>', heading]),
    ...(source_url === null ? [] : [`(${source_url})`]),
  ].join(' ')
