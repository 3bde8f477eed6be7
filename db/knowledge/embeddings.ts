import { AppError, invalid } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { EmbeddingEndpoint } from '../process/embeddings.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'

/**
 * The embedding of a collection: how to make the vectors of its passages, and how far they are made. A workflow makes
 * them (`activities/embed-some.ts`): it is queued by the transaction that changes the endpoint or a passage.
 */

/** The embedding of a collection, as in the API. */
export interface Embedding {
  base_url: string
  model: string
  dimensions: number | null
  status: 'queued' | 'running' | 'completed' | 'failed'
  /** The passages that have a vector of this model. */
  embedded: number
  passages: number
  error: { message: string } | null
  updated_at: Date
}

/** As a user sets it. `api_key` undefined: the stored key stays; null: none is sent. */
export interface EmbeddingConfig {
  base_url: string
  model: string
  dimensions: number | null
  api_key?: string | null | undefined
}

export interface EmbeddingRow {
  id: string
  base_url: string
  model: string
  dimensions: number | null
  api_key_sealed: string | null
  generation: number
  vector_length: number | null
  status: Embedding['status']
  starts: number
  requested: number
}

export const EMBEDDING_COLUMNS = [
  'id',
  'base_url',
  'model',
  'dimensions',
  'api_key_sealed',
  'generation',
  'vector_length',
  'status',
  'starts',
  'requested',
]

export const embeddings = (tx: Tenant) =>
  tx.trx('knowledge_embeddings').where({ organization_id: tx.organizationId })

/**
 * Sets the embedding of a collection, whose row the caller has locked, and queues its workflow. With another model, all
 * vectors are made again. Throws `validation_error` for another server without its key.
 */
export async function setEmbedding(
  tx: Tenant,
  keys: SecretsKey,
  id: string,
  { api_key, ...config }: EmbeddingConfig,
): Promise<void> {
  const before = await embeddings(tx)
    .where({ id })
    .forUpdate()
    .first<EmbeddingRow | undefined>(EMBEDDING_COLUMNS)
  // A key is sent to the server that it was given for, and to no other.
  if (before?.api_key_sealed && api_key === undefined && originOf(before) !== originOf(config))
    throw invalid([
      {
        loc: ['body', 'api_key'],
        msg: 'is required with another server',
        type: 'missing',
        hint: 'send its key, or null for none',
      },
    ])
  const sealed =
    api_key === undefined
      ? (before?.api_key_sealed ?? null)
      : api_key === null
        ? null
        : seal(keys, api_key, ownerOfEmbedding(tx.organizationId, id))
  const values = { ...config, api_key_sealed: sealed }
  if (!before) {
    await tx
      .trx('knowledge_embeddings')
      .insert({ organization_id: tx.organizationId, id, ...values, status: 'queued' })
    return tx.wake('agx_files')
  }
  const same = (['base_url', 'model', 'dimensions'] as const).every((name) => before[name] === config[name])
  await embeddings(tx)
    .where({ id })
    .update({ ...values, ...(same ? {} : { generation: before.generation + 1, vector_length: null }) })
  await requestEmbedding(tx, id)
}

/** Ends the embedding of a collection and deletes its vectors. */
export async function removeEmbedding(tx: Tenant, id: string): Promise<void> {
  if ((await embeddings(tx).where({ id }).delete()) === 0) return
  await tx.trx('knowledge_vectors').where({ organization_id: tx.organizationId, collection_id: id }).delete()
}

/**
 * Queues the workflow of a collection, if it has an embedding: its passages have changed. A workflow that is running sees
 * the new number before it ends. Locks the row, so that documents of such a collection are written one after another.
 */
export async function requestEmbedding(tx: Tenant, id: string): Promise<void> {
  const { rowCount } = await tx.trx.raw<{ rowCount: number }>(
    `update knowledge_embeddings set requested = requested + 1, updated_at = now(),
       starts = starts + case when status in ('completed', 'failed') then 1 else 0 end,
       error = case when status = 'failed' then null else error end,
       status = case when status in ('completed', 'failed') then 'queued' else status end
     where organization_id = ? and id = ?`,
    [tx.organizationId, id],
  )
  if (rowCount > 0) tx.wake('agx_files')
}

/** The embeddings of collections, by id. */
export async function embeddingsOf(tx: Tenant, ids: readonly string[]): Promise<Map<string, Embedding>> {
  const { rows } = await tx.trx.raw<{ rows: (Embedding & { id: string })[] }>(
    `select id, base_url, model, dimensions, status, error, updated_at,
       (select count(*) from knowledge_vectors v where v.organization_id = e.organization_id
          and v.collection_id = e.id and v.generation = e.generation)::integer as embedded,
       (select coalesce(sum(d.passages), 0) from knowledge_documents d
        where d.organization_id = e.organization_id and d.collection_id = e.id)::integer as passages
     from knowledge_embeddings e where organization_id = ? and id = any(?::uuid[])`,
    [tx.organizationId, [...ids]],
  )
  return new Map(rows.map(({ id, ...embedding }) => [id, embedding]))
}

/** The endpoint of an embedding, with its key opened. Throws `unavailable` for a key of another SECRETS_KEY. */
export function endpointOf(keys: SecretsKey, organizationId: string, row: EmbeddingRow): EmbeddingEndpoint {
  const { base_url, model, dimensions, api_key_sealed } = row
  return { base_url, model, dimensions, apiKey: opened() }

  function opened(): string | undefined {
    if (api_key_sealed === null) return undefined
    try {
      return open(keys, api_key_sealed, ownerOfEmbedding(organizationId, row.id))
    } catch {
      throw new AppError('unavailable', 'the api_key of the embedding was sealed with another SECRETS_KEY', {
        hint: 'set the embedding of the collection again, with its api_key',
      })
    }
  }
}

const originOf = ({ base_url }: { base_url: string }) => new URL(base_url).origin

/** The owner that an api_key is sealed for. */
export const ownerOfEmbedding = (organizationId: string, id: string) => `embedding.${organizationId}.${id}`
