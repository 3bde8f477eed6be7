import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  claimIdempotencyKey,
  type IdempotentRequest,
  renewLease,
  type StoredAnswer,
  storeAnswer,
} from '../../db/access/idempotency.ts'
import { AppError, type ErrorType, type Issue } from '../../db/model/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { errorBody, STATUS } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { requireScopes, scopeNamed } from './scopes.ts'

const MAX_LENGTH = 255
/** The interval of lease renewals: three in each lease. */
const RENEW_MS = 1_000
const IDEMPOTENCY_ERRORS: ErrorType[] = ['idempotency_conflict', 'idempotency_in_progress']

/** The Idempotency-Key of a request. */
export function idempotencyKey(request: IncomingMessage): { key?: string; issues: Issue[] } {
  const key = request.headers['idempotency-key']
  if (key === undefined) return { issues: [] }
  if (typeof key === 'string' && key.length > 0 && key.length <= MAX_LENGTH) return { key, issues: [] }
  const loc = ['header', 'Idempotency-Key']
  return { issues: [{ loc, msg: `must have 1 to ${MAX_LENGTH} characters`, type: 'invalid_length' }] }
}

interface Keyed {
  /** The response has a secret. */
  secret?: boolean | undefined
  method: string
  path: string
  key: string
  bytes: Buffer | undefined
}

/**
 * Executes a request with an Idempotency-Key, or returns the stored response. Throws insufficient_scope if the caller
 * has since lost a scope that the handler required.
 *
 * One transaction contains the claim of the key, the effects of the handler and the stored response. A crash rolls back
 * all of them, so a retry neither repeats an effect nor finds the key locked. A handler that must wait for other
 * processes to see its effects commits early with `request.commit(answer)`. The key then stays in progress until the
 * handler returns; after a crash, until its lease of a few seconds expires. Computations in threads are made before the
 * transaction (`Compute.before`).
 */
export async function runOnce(
  request: Exchange,
  keyed: Keyed,
  status: number,
  execute: () => Promise<unknown>,
): Promise<StoredAnswer> {
  const { deps } = request
  return deps.compute.before((compute) => {
    request.deps = { ...deps, compute }
    return attemptOnce(request, keyed, status, execute)
  })
}

async function attemptOnce(
  request: Exchange,
  keyed: Keyed,
  status: number,
  execute: () => Promise<unknown>,
): Promise<StoredAnswer> {
  const identity = identityOf(request, keyed)
  const early = offerEarlyCommit(request)
  let outcome: Outcome
  try {
    outcome = await claimAndExecute(request, identity, status, early, execute)
  } catch (error) {
    early.committed.reject(error)
    if (isStorable(error)) await storeError(request, identity, error)
    throw error
  } finally {
    request.transaction = undefined
    request.commitEarly = undefined
  }
  if ('replayed' in outcome) return replay(request, outcome.replayed)
  early.committed.resolve()
  return finish(request, identity, status, early, outcome.handling)
}

function identityOf({ caller, deps }: Exchange, { secret, bytes, ...keyed }: Keyed): IdempotentRequest {
  const hash = createHash('sha256')
    .update(bytes ?? '')
    .digest()
  return { ...keyed, callerId: caller.id, hash, sealedWith: secret ? deps.secretsKey : undefined }
}

/** The early commit of a handler: `answer` is what it commits with, `committed` settles with the transaction. */
interface EarlyCommit {
  answer: Deferred<EarlyAnswer>
  committed: Deferred<void>
}

/** Enables `request.commit` for the handler. */
function offerEarlyCommit(request: Exchange): EarlyCommit {
  const answer = deferred<EarlyAnswer>()
  const committed = deferred<void>()
  // Only a handler that commits early awaits this promise.
  committed.promise.catch(() => {})
  request.keyed = true
  request.commitEarly = (provisional) => {
    answer.resolve({ answer: provisional, provisional: true })
    return committed.promise
  }
  return { answer, committed }
}

/** A stored response, or the handler, which is still running after an early commit. */
type Outcome = { replayed: StoredAnswer } | { handling: Promise<unknown> }

/** The transaction of a keyed request: it claims the key, executes the handler and stores its response. */
function claimAndExecute(
  request: Exchange,
  identity: IdempotentRequest,
  status: number,
  early: EarlyCommit,
  execute: () => Promise<unknown>,
): Promise<Outcome> {
  return inTransaction(request, async (tx) => {
    // The first handler still waits after a failed commit: a second one must not run concurrently.
    if (early.answer.settled) throw new AppError('unavailable', 'the response could not be stored: try again')
    const replayed = await claimIdempotencyKey(tx, identity)
    if (replayed) return { replayed }
    request.transaction = { ...tx, last() {} }
    const handling = execute()
    const { answer, provisional } = await Promise.race([early.answer.promise, handling.then(asFinal)])
    if (!request.isPreview)
      await storeAnswer(tx, identity, answerOf(request, status, answer), { provisional })
    return { handling }
  })
}

/** Stores the response to an error, whose effects were rolled back, so that a retry gets the same error. */
async function storeError(request: Exchange, identity: IdempotentRequest, error: AppError): Promise<void> {
  const { deps, caller, actor, requestId } = request
  const stored = { ...answerOf(request, STATUS[error.type], errorBody(error, requestId)), headers: {} }
  await deps.db.tenant(caller.organization.id, actor, async (tx) => {
    if (await reclaim(tx, identity)) await storeAnswer(tx, identity, stored)
  })
}

/** Responds with a stored response. Throws insufficient_scope. */
function replay(request: Exchange, replayed: StoredAnswer): StoredAnswer {
  requireScopes(request.caller, replayed.scopes.map(scopeNamed))
  for (const [name, value] of Object.entries(replayed.headers)) request.setHeader(name, value)
  request.setHeader('Idempotency-Replayed', 'true')
  return replayed
}

/**
 * The response of the handler. If the handler has committed early, renews the lease of the key until the handler
 * returns, and then stores the final response.
 */
async function finish(
  request: Exchange,
  identity: IdempotentRequest,
  status: number,
  early: EarlyCommit,
  handling: Promise<unknown>,
): Promise<StoredAnswer> {
  const renewal = setInterval(() => {
    // A lease that expires early does no harm: a retry gets the provisional answer.
    if (early.answer.settled) inTransaction(request, (tx) => renewLease(tx, identity)).catch(() => {})
  }, RENEW_MS)
  try {
    const answer = answerOf(request, status, await handling)
    if (early.answer.settled && !request.isPreview)
      await inTransaction(request, (tx) => storeAnswer(tx, identity, answer))
    return answer
  } finally {
    clearInterval(renewal)
  }
}

const inTransaction = <T>({ deps, caller, actor, trace }: Exchange, work: (tx: Tenant) => Promise<T>) =>
  deps.db.tenant(caller.organization.id, actor, work, trace)

const answerOf = (request: Exchange, status: number, body: unknown): StoredAnswer => ({
  status,
  body: JSON.stringify(body),
  headers: request.handlerHeaders,
  scopes: [...request.requiredScopes],
})

/** The response that is stored with the handler's effects: provisional if the handler has committed early. */
interface EarlyAnswer {
  answer: unknown
  provisional: boolean
}

const asFinal = (answer: unknown): EarlyAnswer => ({ answer, provisional: false })

/**
 * Claims a key again after a rollback. @returns false if another request has claimed it since: this error must not
 * replace the response of a request that took effect.
 */
async function reclaim(tx: Tenant, identity: IdempotentRequest): Promise<boolean> {
  try {
    return (await claimIdempotencyKey(tx, identity)) === undefined
  } catch (error) {
    if (error instanceof AppError && IDEMPOTENCY_ERRORS.includes(error.type)) return false
    throw error
  }
}

/**
 * Statuses of refusals without effects, whose cause the client or an admin can remove, so that a retry must run again:
 * a scope or plan changes (403), a record is restored (404), If-Match is current (412), a definition changes (422).
 */
const UNSTORED = [403, 404, 412, 422, 429]

/** Whether the response to an error is stored. A conflict is stored; a refusal or a temporary error is not. */
function isStorable(error: unknown): error is AppError {
  if (!(error instanceof AppError)) return false
  const status = STATUS[error.type]
  return status < 500 && !UNSTORED.includes(status) && !IDEMPOTENCY_ERRORS.includes(error.type)
}

type Deferred<T> = ReturnType<typeof deferred<T>>

function deferred<T>() {
  let settled = false
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = (value) => {
      settled = true
      onResolve(value)
    }
    reject = onReject
  })
  return {
    promise,
    resolve,
    reject,
    get settled() {
      return settled
    },
  }
}
