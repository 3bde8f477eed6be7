import { z } from 'zod'
import { actor, refuseOthers } from '../../db/model/records/schemas.ts'
import {
  collectionName,
  DOCUMENT_FORMATS,
  documentFields,
  LANGUAGES,
} from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'

/** The shapes of collections, documents and passages of the knowledge base. */

const described = {
  name: collectionName.describe('The name, unique in the organization, compared case-insensitively.'),
  description: z.string().trim().max(2_000).describe('A description of its content.'),
  language: z
    .enum(LANGUAGES)
    .describe(
      'The language of the documents. It determines the stemming and the stop words of the full-text search. `simple` has neither, for texts in several languages.',
    ),
}

export const embeddingBody = z
  .strictObject({
    base_url: z
      .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
      .max(2_048)
      .refine((url) => !/[?#]|\/\/[^/]*@/.test(url), 'may have no query, fragment or user')
      .describe('The URL of an OpenAI-compatible service, above `/embeddings`: `https://api.openai.com/v1`.'),
    model: z.string().trim().min(1).max(200).describe('The model. Another model makes all vectors again.'),
    dimensions: z
      .int()
      .min(8)
      .max(KNOWLEDGE.dimensions)
      .nullable()
      .default(null)
      .describe('The length of the vectors to ask for, for models that can shorten them.'),
    api_key: z
      .string()
      .trim()
      .min(1)
      .max(1_000)
      .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
      .nullable()
      .optional()
      .describe(
        'The key of the service, stored encrypted and never returned. Absent: the stored key stays. `null`: none is sent.',
      ),
  })
  .meta({ id: 'KnowledgeEmbedding' })

export const collectionCreate = z
  .strictObject({
    name: described.name,
    description: described.description.nullable().default(null),
    language: described.language.default('english'),
  })
  .meta({ id: 'KnowledgeCollectionCreate' })

export const collectionUpdate = changes('KnowledgeCollectionUpdate', {
  name: described.name.optional(),
  description: described.description.nullable().optional(),
  language: described.language.optional(),
})

const { title, body, format, tags, source_url, external_id } = documentFields

export const documentCreate = z
  .strictObject({
    title,
    body,
    format: format.default('text'),
    tags: tags.default([]),
    source_url: source_url.nullable().default(null),
    external_id: external_id.nullable().default(null),
    replace_existing: z
      .boolean()
      .default(false)
      .describe(
        'Whether the document replaces an existing document of the collection with the same `external_id`; otherwise that is a conflict. Equal values change nothing.',
      ),
  })
  .meta({ id: 'KnowledgeDocumentCreate' })

export const documentUpdate = changes('KnowledgeDocumentUpdate', {
  title: title.optional(),
  body: body.optional(),
  format: format.optional(),
  tags: tags.optional(),
  source_url: source_url.nullable().optional(),
  external_id: external_id.nullable().optional(),
})

const stamps = {
  version: z.int().min(1),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  created_by: actor,
  updated_by: actor,
}

export const collectionSchema = z
  .object({
    object: z.literal('knowledge_collection'),
    id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    language: described.language,
    embedding: z
      .object({
        base_url: z.string(),
        model: z.string(),
        dimensions: z.int().nullable(),
        status: z
          .enum(['queued', 'running', 'completed', 'failed'])
          .describe(
            'Whether its vectors are made. The next change of a document, or of the embedding, repeats what failed.',
          ),
        embedded: z.int().describe('The passages that have a vector of the model.'),
        passages: z.int(),
        error: z.object({ message: z.string() }).nullable(),
        updated_at: z.iso.datetime(),
      })
      .nullable(),
    documents: z.int().describe('The number of its documents.'),
    ...stamps,
  })
  .meta({ id: 'KnowledgeCollection' })

const documentShape = {
  object: z.literal('knowledge_document'),
  id: z.uuid(),
  collection_id: z.uuid(),
  external_id: z.string().nullable(),
  title: z.string(),
  format: z.enum(DOCUMENT_FORMATS),
  tags: z.array(z.string()),
  source_url: z.string().nullable(),
  passages: z.int().describe('The number of its passages, the units of search results.'),
  ...stamps,
}

/** A document in a list: without its text. */
export const documentSummarySchema = z.object(documentShape).meta({ id: 'KnowledgeDocumentSummary' })

export const documentSchema = z
  .object({ ...documentShape, body: z.string().describe('The text or markup, unchanged.') })
  .meta({ id: 'KnowledgeDocument' })

export const passageSchema = z
  .object({
    object: z.literal('knowledge_passage'),
    document_id: z.uuid(),
    collection_id: z.uuid(),
    position: z.int().describe('Its position among the passages of the document, from 0.'),
    title: z.string().describe('The title of the document.'),
    heading: z.string().describe('The headings above the passage, outermost first; empty if there are none.'),
    text: z.string().describe('The passage. Plain text for documents of the format `html`.'),
    highlight: z.string().describe('The text as safe HTML: escaped, with the matching words in `<mark>`.'),
    score: z
      .number()
      .describe(
        'The rank, from 0 to 1. With `mode` text: above 0.5 if the passage contains every word; vector: the cosine; hybrid: 1 if it is first in both rankings. Only comparable within one search.',
      ),
    match: z
      .enum(['all', 'any', 'vector'])
      .describe(
        'Whether the passage contains all words of the query, or some; `vector`: only its meaning is near.',
      ),
    tags: z.array(z.string()).describe('The tags of the document.'),
    source_url: z.string().nullable(),
  })
  .meta({ id: 'KnowledgePassage' })

/** A list of tags in a query string. */
export const tagsParameter = z
  .string()
  .transform((text) => text.split(','))
  .pipe(tags)
  .optional()
  .describe('Comma-separated tags: only documents that have all of them.')

const READ_ONLY = new Set([
  'object',
  'id',
  'collection_id',
  'documents',
  'passages',
  'version',
  'created_at',
  'updated_at',
  'created_by',
  'updated_by',
])

/** The body of a PATCH; read-only members get their own error. */
function changes<Shape extends z.ZodRawShape>(id: string, shape: Shape) {
  return z
    .object(shape)
    .catchall(z.unknown())
    .superRefine((input, ctx) => refuseOthers(input, shape, READ_ONLY, ctx), {
      when: ({ value }) => typeof value === 'object' && value !== null,
    })
    .meta({ additionalProperties: false })
    .meta({ id })
}
