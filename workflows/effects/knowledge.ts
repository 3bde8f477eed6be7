import type { DocumentFormat, SearchMode } from '../shared/knowledge.ts'
import { listed, type Port } from './define.ts'

/** The knowledge base of the organization. `collection` is an id or a name. The methods throw the errors of the API. */
export interface Knowledge {
  search(query: KnowledgeQuery): Promise<{ passages: KnowledgePassage[]; has_more: boolean }>
  /**
   * Adds a document, once in a run: a repetition replaces it. A document with an `external_id` replaces the one of the
   * collection with the same `external_id`.
   */
  add(collection: string, document: NewDocument): Promise<AddedDocument>
}

export interface KnowledgeQuery {
  q: string
  collection?: string | undefined
  tags?: string[] | undefined
  match: 'all' | 'any'
  mode: SearchMode
  limit: number
}

export interface KnowledgePassage {
  document_id: string
  collection_id: string
  title: string
  heading: string
  text: string
  score: number
  match: 'all' | 'any' | 'vector'
  tags: string[]
  source_url: string | null
}

export interface NewDocument {
  title: string
  body: string
  format: DocumentFormat
  tags: string[]
  source_url: string | null
  external_id: string | null
}

export interface AddedDocument {
  id: string
  collection_id: string
  external_id: string | null
  title: string
  passages: number
  version: number
  created: boolean
}

export const knowledge: Port<Knowledge> = {
  // `external`: a search by vectors, which calls the endpoint that makes that of the query.
  classes: ['read', 'write', 'external'],
  scoped: true,
  words: {
    search: {
      call: ({ collection, tags, mode, limit }) =>
        [
          `searching ${collection === undefined ? 'the knowledge base' : `the collection ${collection}`}`,
          ...(tags ? [`${tags.length} tags`] : []),
          ...listed('by', mode === 'text' ? [] : [mode]),
          `at most ${limit} passages`,
        ].join(', '),
      result: ({ passages, has_more }) =>
        `found ${passages.length} passages${has_more ? ', and there are more' : ''}`,
    },
    add: {
      call: (collection, { body, format, external_id, tags }) =>
        [
          `adding a document to the collection ${collection}`,
          `${Buffer.byteLength(body)} bytes of ${format}`,
          ...(tags.length > 0 ? [`${tags.length} tags`] : []),
          ...listed('instead of the one with the external_id', external_id === null ? [] : [external_id]),
        ].join(', '),
      result: ({ id, passages, created }) =>
        `${created ? 'added' : 'replaced'} the document ${id}, ${passages} passages`,
    },
  },
}
