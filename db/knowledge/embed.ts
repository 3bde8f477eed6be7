import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { packed, signsOf } from '../model/knowledge/vectors.ts'
import { since } from '../model/work-end.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { EMBEDDING_COLUMNS, type EmbeddingRow, embeddings } from './embeddings.ts'

/** Queries of the workflow that makes the vectors of a collection: `activities/embed-some.ts`. */

/** A start of the workflow; an earlier one changes nothing. */
export interface EmbeddingStart {
  id: string
  start: number
}

/** A passage without a vector, with what the vector is made of. */
export interface Pending {
  document_id: string
  position: number
  text: string
}

/** The place of a passage in the order in which they are read. */
export type Place = Pick<Pending, 'document_id' | 'position'>

type Started = EmbeddingRow & { started_at: Date | null; created_at: Date }

/** The embedding of this start; undefined if it has ended, was removed, or another start replaced this one. */
export async function beginEmbedding(
  tx: Tenant,
  { id, start }: EmbeddingStart,
): Promise<Started | undefined> {
  const [row] = await embeddings(tx)
    .where({ id, starts: start })
    .whereIn('status', ['queued', 'running'])
    .update({
      status: 'running',
      started_at: tx.trx.raw("case when status = 'queued' then now() else coalesce(started_at, now()) end"),
      lease_until: null,
      updated_at: tx.trx.fn.now(),
    })
    .returning<Started[]>([...EMBEDDING_COLUMNS, 'started_at', 'created_at'])
  return row
}

/** The next passages after a place that have no vector of the generation. */
export async function pendingPassages(
  tx: Tenant,
  { id, generation }: EmbeddingRow,
  after: Place | undefined,
): Promise<Pending[]> {
  const { rows } = await tx.trx.raw<{ rows: Pending[] }>(
    `select p.document_id, p.position, concat_ws(E'\\n', d.title, nullif(p.heading, ''), p.text) as text
     from knowledge_passages p
     join knowledge_documents d on d.organization_id = p.organization_id and d.id = p.document_id
     where p.organization_id = :organizationId and p.collection_id = :id
       ${after ? 'and (p.document_id, p.position) > (:document_id, :position)' : ''}
       and not exists (select from knowledge_vectors v where v.organization_id = p.organization_id
         and v.document_id = p.document_id and v.position = p.position and v.generation = :generation)
     order by p.document_id, p.position limit :limit`,
    { organizationId: tx.organizationId, id, generation, limit: KNOWLEDGE.embedded, ...(after ?? {}) },
  )
  return rows
}

/**
 * Stores the vectors of passages, except of those that have changed since: they are still pending. The caller has
 * checked their length. @returns whether the embedding is still that of `row`.
 */
export async function storeVectors(
  tx: Tenant,
  row: EmbeddingRow,
  made: readonly (Pending & { vector: Float32Array })[],
): Promise<boolean> {
  // Waits for documents that are being written, and keeps others from being written meanwhile.
  const [current] = await embeddings(tx)
    .where({ id: row.id, starts: row.starts, generation: row.generation, status: 'running' })
    .update({ vector_length: made[0]!.vector.length, updated_at: tx.trx.fn.now() })
    .returning('id')
  if (!current) return false
  await tx.trx.raw(
    `insert into knowledge_vectors (organization_id, document_id, position, collection_id, generation, signs, vector)
     select p.organization_id, p.document_id, p.position, p.collection_id, :generation, m.signs::bit varying,
       decode(m.vector, 'base64')
     from jsonb_to_recordset(cast(:made as jsonb))
       as m(document_id uuid, position integer, text text, signs text, vector text)
     join knowledge_passages p on p.organization_id = :organizationId and p.document_id = m.document_id
       and p.position = m.position
     join knowledge_documents d on d.organization_id = p.organization_id and d.id = p.document_id
     where concat_ws(E'\\n', d.title, nullif(p.heading, ''), p.text) = m.text
     on conflict (organization_id, document_id, position)
       do update set generation = excluded.generation, signs = excluded.signs, vector = excluded.vector`,
    {
      organizationId: tx.organizationId,
      generation: row.generation,
      made: JSON.stringify(
        made.map(({ vector, ...pending }) => ({
          ...pending,
          signs: signsOf(vector),
          vector: packed(vector).toString('base64'),
        })),
      ),
    },
  )
  return true
}

/**
 * Ends the embedding. @returns whether it was running, and for `completed` whether no passage has changed since `row`.
 */
export async function endEmbedding(
  tx: Tenant,
  row: Started,
  end: { status: 'completed' } | { status: 'failed'; message: string },
): Promise<boolean> {
  const ended = embeddings(tx)
    .where({ id: row.id, starts: row.starts, status: 'running' })
    .update({
      status: end.status,
      error: end.status === 'failed' ? JSON.stringify({ message: end.message.slice(0, 1_000) }) : null,
      ended_at: tx.trx.fn.now(),
      updated_at: tx.trx.fn.now(),
    })
  const count = await (end.status === 'completed' ? ended.where({ requested: row.requested }) : ended)
  if (count === 0) return false
  tx.ends.push({
    work: 'embedding',
    status: end.status,
    organization_id: tx.organizationId,
    ms: since(row.started_at ?? row.created_at),
    of: { collection_id: row.id },
  })
  return true
}
