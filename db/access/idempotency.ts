import type { Knex } from 'knex'
import { AppError } from '../errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The scope of an Idempotency-Key within its organization. */
export interface IdempotentRequest {
  method: string
  path: string
  key: string
  /** SHA-256 of the raw body. */
  hash: Buffer
}

export interface StoredAnswer {
  status: number
  /** JSON text. */
  body: string
  /** Headers specific to this answer, such as its ETag. */
  headers: Record<string, string>
}

/**
 * Claims a key for this transaction, or returns its stored answer of the last 24 hours. The claim is a
 * transaction-scoped advisory lock: a process that dies leaves neither an effect nor a locked key.
 * Throws idempotency_conflict if the key was used with another body or is still in flight.
 */
export async function claimIdempotencyKey(
  tx: Tenant,
  request: IdempotentRequest,
): Promise<StoredAnswer | undefined> {
  const { rows: locks } = await tx.trx.raw<{ rows: { locked: boolean }[] }>(
    "select pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', ?::text, ?::text, ?::text, ?::text), 0)) as locked",
    [tx.organizationId, request.method, request.path, request.key],
  )
  if (!locks[0]!.locked) throw inFlight()
  const row: Row | undefined = await tx
    .trx('idempotency_keys')
    .where(identity(tx, request))
    .whereNotNull('status')
    .whereRaw("created_at > now() - interval '24 hours'")
    .first('request_hash', 'status', 'body', 'headers', tx.trx.raw('locked_until > now() as locked'))
  if (!row) return undefined
  if (!request.hash.equals(row.request_hash))
    throw new AppError('idempotency_conflict', 'this key was used with another body')
  if (row.locked) throw inFlight()
  return { status: row.status, body: row.body, headers: row.headers }
}

/**
 * Stores the answer to a key in the transaction of its request. With `inFlightFor` the answer is provisional: the key
 * is in flight for that many seconds; if no other answer replaces it, it is valid afterwards.
 */
export async function storeAnswer(
  tx: Tenant,
  request: IdempotentRequest,
  answer: StoredAnswer,
  inFlightFor?: number,
): Promise<void> {
  await tx
    .trx('idempotency_keys')
    .insert({
      ...identity(tx, request),
      request_hash: request.hash,
      ...answer,
      created_at: tx.trx.fn.now(),
      locked_until: inFlightFor ? tx.trx.raw('now() + make_interval(secs => ?)', [inFlightFor]) : null,
    })
    .onConflict(['organization_id', 'method', 'path', 'key'])
    .merge()
}

/** Deletes keys older than 24 hours. */
export async function purgeIdempotencyKeys(system: Knex): Promise<void> {
  await system.raw(
    `delete from idempotency_keys where ctid in (
       select ctid from idempotency_keys where created_at < now() - interval '24 hours' limit 10000)`,
  )
}

interface Row extends StoredAnswer {
  request_hash: Buffer
  /** Null if the answer is final. */
  locked: boolean | null
}

const inFlight = () => new AppError('idempotency_conflict', 'a request with this key is in flight')

const identity = (tx: Tenant, request: IdempotentRequest) => ({
  organization_id: tx.organizationId,
  method: request.method,
  path: request.path,
  key: request.key,
})
