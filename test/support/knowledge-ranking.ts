import { readFileSync } from 'node:fs'
import { createCollection, embedCollection } from '../../db/knowledge/collections.ts'
import { addDocument } from '../../db/knowledge/documents.ts'
import { beginEmbedding, pendingPassages, storeVectors } from '../../db/knowledge/embed.ts'
import { searchPassages } from '../../db/knowledge/search.ts'
import { passagesOf } from '../../db/model/knowledge/passages.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { SecretsKey } from '../../db/process/seal.ts'
import type { SearchMode } from '../../workflows/shared/knowledge.ts'
import { testActor } from './database.ts'
import { embeddingOf } from './embedding.ts'

/**
 * The labelled set: 500 passages of a help center, and 250 questions with the passage that answers each. A third of the
 * questions names its subject otherwise than the passage, one of eight has a misspelt word.
 */
export const SET: {
  passages: { id: string; title: string; heading: string; text: string }[]
  questions: { q: string; best: string }[]
} = JSON.parse(readFileSync(new URL('../fixtures/knowledge-questions.json', import.meta.url), 'utf8'))

export type Ranking = SearchMode | 'ts_rank'
export const RANKINGS: readonly Ranking[] = ['ts_rank', 'text', 'vector', 'hybrid']

const TOP = 10

/** A collection of the passages, with vectors. @returns its id. */
export async function fillWithSet(db: Database, organizationId: string): Promise<string> {
  const keys: SecretsKey = Buffer.alloc(32, 1)
  const settings = { base_url: 'https://embeddings.example.com', model: 'small', dimensions: null }
  const id = await db.tenant(organizationId, testActor, async (tx) => {
    const values = { name: 'Labelled', description: null, language: 'english' as const }
    const collection = await createCollection(tx, values)
    await embedCollection(tx, keys, collection.id, settings, undefined)
    for (const { id, title, heading, text } of SET.passages)
      await addDocument(
        tx,
        collection.id,
        {
          title,
          body: `# ${heading}\n\n${text}`,
          format: 'markdown',
          tags: [],
          source_url: null,
          external_id: id,
        },
        { split: passagesOf, replaceExisting: false },
      )
    return collection.id
  })
  await embedAll(db, organizationId, id)
  return id
}

/** Makes the vectors of a collection as its workflow does, without an endpoint. */
export function embedAll(db: Database, organizationId: string, id: string): Promise<void> {
  return db.tenant(organizationId, testActor, async (tx) => {
    const row = await beginEmbedding(tx, { id, start: 1 })
    for (;;) {
      const pending = await pendingPassages(tx, row!, undefined)
      if (pending.length === 0) return
      await storeVectors(
        tx,
        row!,
        pending.map((one) => ({ ...one, vector: unit(embeddingOf(one.text)) })),
      )
    }
  })
}

export const unit = (vector: number[]): Float32Array => {
  const length = Math.hypot(...vector)
  return Float32Array.from(vector, (value) => value / length)
}

/** The external ids of the first ten passages. */
export async function topOf(
  db: Database,
  organizationId: string,
  collection: string,
  ranking: Ranking,
  q: string,
): Promise<string[]> {
  const found = await db.tenant(organizationId, testActor, async (tx) => {
    if (ranking === 'ts_rank') {
      const { rows } = await tx.trx.raw<{ rows: { document_id: string }[] }>(
        `select document_id from knowledge_passages,
           cast(replace(cast(plainto_tsquery('english', ?) as text), '&', '|') as tsquery) query
         where organization_id = ? and collection_id = ? and search @@ query
         order by ts_rank(search, query) desc, document_id limit ?`,
        [q, organizationId, collection, TOP],
      )
      return rows
    }
    const vectors =
      ranking === 'text'
        ? []
        : [{ vector: unit(embeddingOf(q)), collections: [{ id: collection, generation: 1 }] }]
    const search = { q, collection_id: collection, match: 'any' as const, mode: ranking }
    return (await searchPassages(tx, search, { limit: TOP, offset: 0 }, vectors)).data
  })
  const { rows } = await db.system.raw<{ rows: { id: string; external_id: string }[] }>(
    'select id, external_id from knowledge_documents where organization_id = ? and collection_id = ?',
    [organizationId, collection],
  )
  const names = new Map(rows.map(({ id, external_id }) => [id, external_id]))
  return found.map(({ document_id }) => names.get(document_id)!)
}

/** Of one relevant passage, nDCG is 1 / log2(1 + its rank). */
export async function measure(
  db: Database,
  organizationId: string,
  collection: string,
  ranking: Ranking,
  questions: typeof SET.questions,
): Promise<{ ndcg: number; recall: number }> {
  let ndcg = 0
  let recall = 0
  for (const { q, best } of questions) {
    const rank = (await topOf(db, organizationId, collection, ranking, q)).indexOf(best) + 1
    if (rank === 0) continue
    recall += 1
    ndcg += 1 / Math.log2(1 + rank)
  }
  return { ndcg: ndcg / questions.length, recall: recall / questions.length }
}
