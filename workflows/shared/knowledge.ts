import { z } from 'zod'
import { KNOWLEDGE } from './limits.ts'

/** The shapes of the knowledge base, which the API and the node types share. */

export const DOCUMENT_FORMATS = ['text', 'markdown', 'html'] as const
export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number]

/** The text search configurations of PostgreSQL 15. `simple` has neither stemming nor stop words. */
export const LANGUAGES = [
  'simple',
  'arabic',
  'armenian',
  'basque',
  'catalan',
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'greek',
  'hindi',
  'hungarian',
  'indonesian',
  'irish',
  'italian',
  'lithuanian',
  'nepali',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'serbian',
  'spanish',
  'swedish',
  'tamil',
  'turkish',
  'yiddish',
] as const
export type Language = (typeof LANGUAGES)[number]

export const collectionName = z.string().trim().min(1).max(200)

const tag = z.string().trim().min(1).max(KNOWLEDGE.tag)
export const tags = z
  .array(tag)
  .max(KNOWLEDGE.tags)
  .transform((list) => [...new Set(list)])

export const documentFields = {
  title: z
    .string()
    .trim()
    .min(1)
    .max(KNOWLEDGE.title)
    .describe('The title. It weighs most in the ranking of a search.'),
  body: z
    .string()
    .min(1)
    .refine(
      (text) => Buffer.byteLength(text) <= KNOWLEDGE.bytes,
      `may have at most ${KNOWLEDGE.bytes} bytes: split it into several documents`,
    )
    .describe(`The text or markup, at most ${KNOWLEDGE.bytes} bytes of UTF-8.`),
  format: z
    .enum(DOCUMENT_FORMATS)
    .describe(
      'How to read `body`. Headings of Markdown and HTML divide it into sections; of HTML only the text is searched.',
    ),
  tags: tags.describe('Tags, without duplicates. A search can be restricted to them.'),
  source_url: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .max(2_048)
    .describe('Where people find the document. It is returned with each passage.'),
  external_id: z
    .string()
    .trim()
    .min(1)
    .max(255)
    .describe('The id in the system that the document comes from, unique in its collection.'),
}

export const query = z.string().trim().min(1).max(KNOWLEDGE.query)

export const match = z
  .enum(['any', 'all'])
  .default('any')
  .describe(
    'Which passages are found. `all`: those with every word. `any`: those first, then passages with some of the words, which a question in a sentence needs.',
  )

export const SEARCH_MODES = ['text', 'vector', 'hybrid'] as const
export type SearchMode = (typeof SEARCH_MODES)[number]

export const mode = z
  .enum(SEARCH_MODES)
  .default('text')
  .describe(
    'How passages are ranked. `text`: by their words. `vector`: by their meaning, in collections with an `embedding`. `hybrid`: by both, fused by reciprocal rank, which is best for questions; passages of other collections are found by their words.',
  )

/** What a query may hold, for descriptions. */
export const QUERY_SYNTAX =
  'Words are found in all their forms. `"in quotes"` finds a phrase, `-word` excludes a word, `or` between words finds either.'
