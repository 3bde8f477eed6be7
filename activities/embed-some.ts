import { ApplicationFailure, Context } from '@temporalio/activity'
import {
  beginEmbedding,
  type EmbeddingStart,
  endEmbedding,
  type Pending,
  type Place,
  pendingPassages,
  storeVectors,
} from '../db/knowledge/embed.ts'
import { embeddingsOf, endpointOf } from '../db/knowledge/embeddings.ts'
import { SYSTEM } from '../db/model/actor.ts'
import { AppError } from '../db/model/errors.ts'
import type { Database } from '../db/postgres/connect.ts'
import type { Tenant } from '../db/postgres/tenancy.ts'
import { EmbeddingError, type Embeddings } from '../db/process/embeddings.ts'
import type { SecretsKey } from '../db/process/seal.ts'
import { requireFreeStorage } from '../db/storage/usage.ts'
import type { FileAnswer, FileInput } from '../workflows/bundle/files.ts'
import { withHeartbeat } from './heartbeat.ts'
import { type CallSlots, NoSlot } from './slots/call-slots.ts'
import { inSlot } from './slots/in-slot.ts'

interface EmbedDeps {
  db: Database
  embeddings: Embeddings
  slots: CallSlots
  secretsKey: SecretsKey
}

/** The duration of a turn; well below the shutdown grace period of a worker. */
const TURN_MS = 5_000
/** For one request: some local models need as much for a batch. */
const REQUEST_MS = 60_000
/** Attempts of a turn at an endpoint that is away or busy: some ten minutes, and what it asks to wait. */
const MAX_ATTEMPTS = 25

/**
 * Makes vectors of the next passages of a collection for some seconds, a request to the endpoint for each batch. What has
 * a vector of the current model is not made again, so a turn that is repeated goes on where the last one was lost.
 */
export function createEmbedSome({ db, embeddings, slots, secretsKey }: EmbedDeps) {
  return async function embedSome({ organization_id, id, start }: FileInput): Promise<FileAnswer> {
    const of = { id, start }
    const asSystem = <T>(work: (tx: Tenant) => Promise<T>) => db.tenant(organization_id, SYSTEM, work)
    try {
      await withHeartbeat((signal) =>
        inSlot(slots, { organizationId: organization_id, signal }, (reach) =>
          turn(asSystem, of, signal, reach),
        ),
      )
    } catch (error) {
      if (error instanceof NoSlot)
        throw ApplicationFailure.create({ message: error.message, nextRetryDelay: error.retryInMs })
      const final = finalMessage(error)
      if (final === undefined) throw retried(error)
      await asSystem(async (tx) => {
        const row = await beginEmbedding(tx, of)
        if (row) await endEmbedding(tx, row, { status: 'failed', message: final })
      })
    }
    return answerOf((await asSystem((tx) => embeddingsOf(tx, [id]))).get(id))

    async function turn(
      transact: typeof asSystem,
      of: EmbeddingStart,
      signal: AbortSignal,
      reach: (service: string) => void,
    ): Promise<void> {
      const until = Date.now() + TURN_MS
      let after: Place | undefined
      do {
        const place = after
        const { row, pending } = await transact(async (tx) => {
          const row = await beginEmbedding(tx, of)
          const pending = row ? await pendingPassages(tx, row, place) : []
          // Before the request, which may cost money.
          if (pending.length > 0) await requireFreeStorage(tx)
          return { row, pending }
        })
        if (!row) return
        if (pending.length === 0) {
          // Only a scan from the start has seen every passage.
          if (!place && (await transact((tx) => endEmbedding(tx, row, { status: 'completed' })))) return
          after = undefined
          continue
        }
        const endpoint = endpointOf(secretsKey, organization_id, row)
        reach(new URL(endpoint.base_url).hostname)
        const texts = pending.map(({ text }) => text)
        const vectors = await embeddings.embed(endpoint, texts, { signal, timeoutMs: REQUEST_MS })
        const made = pending.map((one, i): Pending & { vector: Float32Array } => ({
          ...one,
          vector: vectors[i]!,
        }))
        requireLength(row.vector_length, made[0]!.vector.length)
        // Another model, or no embedding: the next round sees it.
        await transact((tx) => storeVectors(tx, row, made))
        after = pending.at(-1)
      } while (Date.now() < until)
    }
  }
}

function requireLength(expected: number | null, length: number): void {
  if (expected !== null && expected !== length)
    throw new EmbeddingError(
      `the embedding endpoint returned vectors of ${length} dimensions, those before have ${expected}: set the embedding again to make all anew`,
      false,
    )
}

/** Why the embedding has failed; undefined if the turn is to be repeated. */
function finalMessage(error: unknown): string | undefined {
  if (error instanceof AppError) return error.message
  if (!(error instanceof EmbeddingError)) return undefined
  return error.retryable && Context.current().info.attempt < MAX_ATTEMPTS ? undefined : error.message
}

function retried(error: unknown): unknown {
  if (!(error instanceof EmbeddingError) || error.retryAfterMs === undefined) return error
  return ApplicationFailure.create({ message: error.message, nextRetryDelay: error.retryAfterMs })
}

function answerOf(
  embedding:
    | { status: string; embedded: number; passages: number; error: { message: string } | null }
    | undefined,
): FileAnswer {
  if (!embedding) return { status: 'stopped', details: 'The embedding was removed.' }
  const { status, embedded, passages, error } = embedding
  return {
    status: status === 'running' || status === 'failed' ? status : 'completed',
    details: `${embedded} of ${passages} passages.${error ? ` ${error.message}.` : ''}`,
  }
}
