import { AppError } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The scope of an Idempotency-Key within its organization. */
export interface IdempotentRequest {
  /** The API key or user of the request. Callers may use the same Idempotency-Key without sharing its response. */
  callerId: string
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
  /** Headers specific to this response, such as its ETag. */
  headers: Record<string, string>
  /** The scopes that the handler required, which a replay requires again. */
  scopes: string[]
}

/**
 * Claims an idempotency key for this transaction, or returns its stored response of the last 24 hours. The claim is a
 * transaction-scoped advisory lock: a process that dies leaves neither an effect nor a locked key. Throws
 * idempotency_conflict if the key was used with another body, and idempotency_in_progress if the first request with it
 * is still in progress.
 */
export async function claimIdempotencyKey(
  tx: Tenant,
  request: IdempotentRequest,
): Promise<StoredAnswer | undefined> {
  const { rows: locks } = await tx.trx.raw<{ rows: { locked: boolean }[] }>(
    "select pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', ?::text, ?::text, ?::text, ?::text, ?::text), 0)) as locked",
    [tx.organizationId, request.callerId, request.method, request.path, request.key],
  )
  if (!locks[0]!.locked) throw inProgress()
  const row: Row | undefined = await tx
    .trx('idempotency_keys')
    .where(identity(tx, request))
    .whereNotNull('status')
    .whereRaw("created_at > now() - interval '24 hours'")
    .first(
      'request_hash',
      'status',
      'body',
      'headers',
      'scopes',
      tx.trx.raw('locked_until > now() as locked'),
    )
  if (!row) return undefined
  if (!request.hash.equals(row.request_hash))
    throw new AppError('idempotency_conflict', 'this key was used with another body')
  if (row.locked) throw inProgress()
  return { status: row.status, body: row.body, headers: row.headers, scopes: row.scopes }
}

/**
 * Stores the response of a keyed request in its transaction. The final response replaces a provisional one. Until then
 * the key is in progress while its process renews the lease; once the lease has expired, the provisional response
 * counts.
 */
export async function storeAnswer(
  tx: Tenant,
  request: IdempotentRequest,
  answer: StoredAnswer,
  { provisional = false } = {},
): Promise<void> {
  await tx
    .trx('idempotency_keys')
    .insert({
      ...identity(tx, request),
      request_hash: request.hash,
      ...answer,
      created_at: tx.trx.fn.now(),
      locked_until: provisional ? leaseEnd(tx) : null,
    })
    .onConflict(['organization_id', 'caller_id', 'method', 'path', 'key'])
    .merge()
}

/** Renews the lease of a provisional response. No-op once the final response is stored. */
export async function renewLease(tx: Tenant, request: IdempotentRequest): Promise<void> {
  await tx
    .trx('idempotency_keys')
    .where(identity(tx, request))
    .whereNotNull('locked_until')
    .update({ locked_until: leaseEnd(tx) })
}

/** Renewed every second. Short, because retries wait for the lease of a dead process. */
const LEASE_SECONDS = 3
const leaseEnd = (tx: Tenant) => tx.trx.raw('now() + make_interval(secs => ?)', [LEASE_SECONDS])

interface Row extends StoredAnswer {
  request_hash: Buffer
  /** Whether the lease is still valid. Null if the response is final. */
  locked: boolean | null
}

const inProgress = () =>
  new AppError('idempotency_in_progress', 'a request with this key is in progress', { retry_after: 1 })

const identity = (tx: Tenant, request: IdempotentRequest) => ({
  organization_id: tx.organizationId,
  caller_id: request.callerId,
  method: request.method,
  path: request.path,
  key: request.key,
})
