import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { SearchMode } from '../../workflows/shared/knowledge.ts'
import { KNOWLEDGE } from '../../workflows/shared/limits.ts'
import { AppError, invalid } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { EmbeddingError, type Embeddings } from '../process/embeddings.ts'
import type { SecretsKey } from '../process/seal.ts'
import { type EmbeddingRow, endpointOf } from './embeddings.ts'
import { type QueryVector, searchedEmbeddings } from './nearest.ts'

/** Milliseconds that a search waits for the vector of its query. */
const TIMEOUT_MS = 8_000
/** Requests to endpoints in progress, of one organization in this process. */
const AT_ONCE = 8
/** Queries whose vectors are kept: of 1,536 dimensions 6 KB each. */
const KEPT = 1_000

interface Search {
  q: string
  collection_id?: string | undefined
  mode?: SearchMode | undefined
}

interface Call {
  signal: AbortSignal
  /** Told of the host before each request. */
  reach?: ((host: string) => void) | undefined
}

/**
 * The vectors of queries, made by the endpoints of the collections, outside of any transaction. A repeated query, such
 * as the next page, makes no request.
 */
export class QueryVectors {
  private readonly kept = new LRUCache<string, Float32Array>({ max: KEPT })
  private readonly running = new Map<string, number>()
  private readonly keys: SecretsKey
  private readonly embeddings: Embeddings

  constructor(keys: SecretsKey, embeddings: Embeddings) {
    this.keys = keys
    this.embeddings = embeddings
  }

  /**
   * @param transact runs a transaction of the organization.
   * Throws `validation_error` if no collection of the search has an embedding, or they have too many; `unavailable` if
   * an endpoint does not return a vector.
   */
  async of(
    { q, collection_id, mode = 'text' }: Search,
    organizationId: string,
    transact: <T>(work: (tx: Tenant) => Promise<T>) => Promise<T>,
    { signal, reach }: Call,
  ): Promise<QueryVector[]> {
    if (mode === 'text') return []
    const rows = await transact((tx) => searchedEmbeddings(tx, collection_id))
    if (rows.length === 0)
      throw refused(`${mode} needs an embedding, which no collection of the search has`, NO_EMBEDDING)
    const byModel = new Map<string, EmbeddingRow[]>()
    // No passage of another collection has a vector yet.
    for (const row of rows.filter(({ vector_length }) => vector_length !== null)) {
      const key = JSON.stringify([row.base_url, row.model, row.dimensions, row.vector_length])
      byModel.set(key, [...(byModel.get(key) ?? []), row])
    }
    if (byModel.size > KNOWLEDGE.models)
      throw refused(
        `the collections have ${byModel.size} different embeddings, of at most ${KNOWLEDGE.models}`,
        {
          hint: 'search one collection: send its collection_id',
        },
      )
    return Promise.all(
      [...byModel].map(async ([key, [first, ...others]]) => ({
        vector: await this.vectorOf(organizationId, key, first!, q, { signal, reach }),
        collections: [first!, ...others].map(({ id, generation }) => ({ id, generation })),
      })),
    )
  }

  private async vectorOf(
    organizationId: string,
    model: string,
    row: EmbeddingRow,
    q: string,
    { signal, reach }: Call,
  ): Promise<Float32Array> {
    const key = createHash('sha256')
      .update(JSON.stringify([organizationId, model, q]))
      .digest('base64')
    const before = this.kept.get(key)
    if (before) return before
    reach?.(new URL(row.base_url).hostname)
    const [vector] = await this.inTurn(organizationId, () =>
      this.embeddings.embed(endpointOf(this.keys, organizationId, row), [q], {
        signal,
        timeoutMs: TIMEOUT_MS,
      }),
    )
    if (vector!.length !== row.vector_length)
      throw unavailable(
        `the embedding endpoint returned a vector of ${vector!.length} dimensions, those of the collection have ${row.vector_length}`,
      )
    this.kept.set(key, vector!)
    return vector!
  }

  /** An endpoint that does not answer holds a bounded number of requests. */
  private async inTurn<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    const running = this.running.get(organizationId) ?? 0
    if (running >= AT_ONCE) throw unavailable('too many searches wait for the embedding endpoint')
    this.running.set(organizationId, running + 1)
    try {
      return await work()
    } catch (error) {
      throw error instanceof EmbeddingError ? unavailable(error.message) : error
    } finally {
      const left = this.running.get(organizationId)! - 1
      if (left === 0) this.running.delete(organizationId)
      else this.running.set(organizationId, left)
    }
  }
}

const unavailable = (message: string) =>
  new AppError('unavailable', message, { retry_after: 5, hint: 'search with mode=text meanwhile' })

const NO_EMBEDDING = { hint: 'search with mode=text, or set `embedding` of the collection' }

const refused = (msg: string, { hint }: { hint: string }) =>
  invalid([{ loc: ['query', 'mode'], msg, type: 'no_embedding', hint }])
