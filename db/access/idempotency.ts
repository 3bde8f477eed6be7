import { AppError } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { open, type SecretsKey, seal } from '../process/seal.ts'

/** The scope of an Idempotency-Key within its organization. */
export interface IdempotentRequest {
  /** The API key or user of the request. Callers may use the same Idempotency-Key without sharing its response. */
  callerId: string
  method: string
  path: string
  key: string
  /** SHA-256 of the raw body. */
  hash: Buffer
  /** Seals the stored response, because it has a secret. */
  sealedWith?: SecretsKey | undefined
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
  const row: Row | undefined = await tx
    .trx('idempotency_keys')
    .where(identity(tx, request))
    .whereNotNull('status')
    .whereRaw("created_at > now() - interval '24 hours'")
    .first(
      'request_hash',
      'status',
      'body',
      'body_sealed',
      'headers',
      'scopes',
      tx.trx.raw('locked_until > now() as locked'),
    )
  // Without the lock too: others that read a stored response hold it as well.
  if (!row && !locks[0]!.locked) throw inProgress()
  if (!row) return undefined
  const { body, hash } = contentOf(tx, request, row)
  if (!request.hash.equals(hash))
    throw new AppError('idempotency_conflict', 'this key was used with another body')
  if (row.locked) throw inProgress()
  return { status: row.status, body, headers: row.headers, scopes: row.scopes }
}

/** The owner that the stored response is sealed for. */
export const ownerOfAnswer = (organizationId: string, key: string) => `${organizationId}.${key}`

/** SQL: what identifies a stored response within its organization. */
export const ANSWER_KEY = "concat_ws(' ', caller_id::text, method, path, key)"

const ownerOf = ({ organizationId }: Tenant, { callerId, method, path, key }: IdempotentRequest) =>
  ownerOfAnswer(organizationId, [callerId, method, path, key].join(' '))

/** The stored body and the hash of its request. Throws conflict for one that was sealed with an unknown key. */
function contentOf(tx: Tenant, request: IdempotentRequest, row: Row): { body: string; hash: Buffer } {
  if (row.body_sealed === null || !request.sealedWith) return { body: row.body, hash: row.request_hash }
  try {
    const [hash, body] = JSON.parse(open(request.sealedWith, row.body_sealed, ownerOf(tx, request)))
    return { body, hash: Buffer.from(hash, 'base64') }
  } catch {
    throw new AppError('conflict', 'the stored response can no longer be opened: SECRETS_KEY has changed', {
      hint: 'the operation was done; rotate the secret with another Idempotency-Key to get a new one',
    })
  }
}

/** The columns with the response and the hash of its request. */
function columnsOf(tx: Tenant, request: IdempotentRequest, { body, ...answer }: StoredAnswer) {
  const { hash, sealedWith } = request
  if (!sealedWith) return { ...answer, body, body_sealed: null, request_hash: hash }
  const content = JSON.stringify([hash.toString('base64'), body])
  const body_sealed = seal(sealedWith, content, ownerOf(tx, request))
  return { ...answer, body: null, body_sealed, request_hash: Buffer.alloc(0) }
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
      ...columnsOf(tx, request, answer),
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
  body_sealed: string | null
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
