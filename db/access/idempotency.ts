import { AppError } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'

/** The scope of an Idempotency-Key within its organization. */
export interface IdempotentRequest {
  /** The API key or user that sends the request. Others may use the same Idempotency-Key, and get their own answer. */
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
  /** Headers specific to this answer, such as its ETag. */
  headers: Record<string, string>
  /** The scopes that the handler required, which a replay requires again. */
  scopes: string[]
}

/**
 * Claims a key for this transaction, or returns its stored answer of the last 24 hours. The claim is a
 * transaction-scoped advisory lock: a process that dies leaves neither an effect nor a locked key.
 * Throws idempotency_conflict if the key was used with another body, and idempotency_in_progress if the first request
 * with it has not been answered yet.
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
 * Stores the answer to a key in the transaction of its request. A provisional answer is replaced by the final one; the
 * key is in progress until then, or until the process that holds it no longer renews its lease. Then it is valid.
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

/** Renews the lease of a provisional answer. Does nothing once the final one is stored. */
export async function renewLease(tx: Tenant, request: IdempotentRequest): Promise<void> {
  await tx
    .trx('idempotency_keys')
    .where(identity(tx, request))
    .whereNotNull('locked_until')
    .update({ locked_until: leaseEnd(tx) })
}

/** Short, for a retry waits so long after the process that held its key has died; renewed every second. */
const LEASE_SECONDS = 3
const leaseEnd = (tx: Tenant) => tx.trx.raw('now() + make_interval(secs => ?)', [LEASE_SECONDS])

interface Row extends StoredAnswer {
  request_hash: Buffer
  /** Null if the answer is final. */
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
