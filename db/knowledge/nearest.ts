import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { cosine, signsOf } from '../model/knowledge/vectors.ts'
import { PLANNED_ANEW } from '../postgres/prepared.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { EMBEDDING_COLUMNS, type EmbeddingRow, embeddings } from './embeddings.ts'

/** The vector of a query, for the collections that it can be compared with: those of the same model. */
export interface QueryVector {
  vector: Float32Array
  collections: { id: string; generation: number }[]
}

export interface Nearest {
  document_id: string
  position: number
  collection_id: string
  cosine: number
}

/** The embeddings that a search can use: of a collection, or of all. */
export function searchedEmbeddings(tx: Tenant, collectionId: string | undefined): Promise<EmbeddingRow[]> {
  const rows = embeddings(tx).orderBy('id').select<EmbeddingRow[]>(EMBEDDING_COLUMNS)
  return collectionId === undefined ? rows : rows.where({ id: collectionId })
}

/**
 * The passages whose vectors are nearest to that of the query, nearest first. The signs of the vectors, which
 * PostgreSQL compares in some 0.1 µs each, select those that are compared exactly: all of a small collection. No
 * extension is needed: with pgvector an index would serve one length of vectors only, and lose matches to the filters
 * of organization, collection and tags, which it applies afterwards.
 */
export async function nearestPassages(
  tx: Tenant,
  vectors: readonly QueryVector[],
  tags: string[] | undefined,
  limit: number,
): Promise<Nearest[]> {
  const found: Nearest[] = []
  for (const { vector, collections } of vectors) {
    const signs = signsOf(vector)
    const { rows } = await tx.trx
      .raw<{ rows: (Omit<Nearest, 'cosine'> & { vector: Buffer })[] }>(
        `select v.document_id, v.position, v.collection_id, v.vector
         from (select document_id, position from knowledge_vectors v
               join jsonb_to_recordset(?::jsonb) as c(id uuid, generation integer)
                 on v.collection_id = c.id and v.generation = c.generation
               where organization_id = ? and length(signs) = ?
                 ${tags ? 'and exists (select from knowledge_documents d where d.organization_id = v.organization_id and d.id = v.document_id and d.tags @> ?::text[])' : ''}
               order by bit_count(signs # ?::bit varying), document_id, position limit ?) near
         join knowledge_vectors v on v.organization_id = ? and v.document_id = near.document_id
           and v.position = near.position`,
        [
          JSON.stringify(collections),
          tx.organizationId,
          vector.length,
          ...(tags ? [tags] : []),
          signs,
          KNOWLEDGE.compared,
          tx.organizationId,
        ] as never,
      )
      .options(PLANNED_ANEW)
    for (const { vector: stored, ...row } of rows) found.push({ ...row, cosine: cosine(vector, stored) })
  }
  const ordered = found.sort(
    (a, b) => b.cosine - a.cosine || a.document_id.localeCompare(b.document_id) || a.position - b.position,
  )
  return ordered.slice(0, limit)
}
