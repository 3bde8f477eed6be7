import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import {
  claimIdempotencyKey,
  type IdempotentRequest,
  type StoredAnswer,
  storeAnswer,
} from '../../db/access/idempotency.ts'
import { AppError, invalid } from '../../db/errors.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import { errorBody, STATUS } from './errors.ts'
import type { Exchange } from './exchange.ts'

const MAX_LENGTH = 255

/** The request's Idempotency-Key. Throws validation_error for one that is empty or too long. */
export function idempotencyKey(request: IncomingMessage): string | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_LENGTH)
    throw invalid([
      {
        loc: ['header', 'Idempotency-Key'],
        msg: `must have 1 to ${MAX_LENGTH} characters`,
        type: 'invalid_length',
      },
    ])
  return key
}

interface Keyed {
  method: string
  path: string
  key: string
  bytes: Buffer | undefined
}

/**
 * Executes a request that carries an Idempotency-Key, or answers what it was answered before.
 *
 * The claim of the key, everything that the handler does and the stored answer are one transaction: a process that
 * dies at any point leaves all of it or nothing, so a retry neither doubles the effect nor finds the key locked. A
 * handler that must wait for others to see its effect ends that transaction with `request.commit(answer, seconds)`:
 * the key is in flight until it answers, or for those seconds should the process die.
 */
export async function runOnce(
  request: Exchange,
  keyed: Keyed,
  status: number,
  execute: () => Promise<unknown>,
): Promise<StoredAnswer> {
  const { db } = request.deps
  const { organization } = request.caller
  const identity = {
    ...keyed,
    hash: createHash('sha256')
      .update(keyed.bytes ?? '')
      .digest(),
  }
  const early = deferred<EarlyAnswer>()
  const committed = deferred<void>()
  // Awaited only by a handler that commits early.
  committed.promise.catch(() => {})
  request.keyed = true
  request.commitEarly = (answer, seconds) => {
    early.resolve({ answer, seconds })
    return committed.promise
  }

  let replayed: StoredAnswer | undefined
  let handling: Promise<unknown> | undefined
  try {
    await db.tenant(organization.id, request.actor, async (tx) => {
      // The handler of a transaction that failed still waits for its commit: a second one must not run beside it.
      if (early.settled) throw new AppError('unavailable', 'the answer could not be stored: try again')
      replayed = await claimIdempotencyKey(tx, identity)
      if (replayed) return
      request.transaction = { ...tx, last() {} }
      handling = execute()
      const { answer, seconds } = await Promise.race([early.promise, handling.then(asLast)])
      if (request.stored)
        await storeAnswer(
          tx,
          identity,
          { status, body: JSON.stringify(answer), headers: request.ownHeaders },
          seconds,
        )
    })
  } catch (error) {
    committed.reject(error)
    if (isStorable(error)) {
      const body = JSON.stringify(errorBody(error, request.requestId))
      await db.tenant(organization.id, request.actor, async (tx) => {
        if (await isFree(tx, identity))
          await storeAnswer(tx, identity, { status: STATUS[error.type], body, headers: {} })
      })
    }
    throw error
  } finally {
    request.transaction = undefined
    request.commitEarly = undefined
  }
  if (replayed) {
    for (const [name, value] of Object.entries(replayed.headers)) request.setHeader(name, value)
    request.setHeader('Idempotency-Replayed', 'true')
    return replayed
  }

  committed.resolve()
  const answer = { status, body: JSON.stringify(await handling), headers: request.ownHeaders }
  if (early.settled && request.stored)
    await db.tenant(organization.id, request.actor, (tx) => storeAnswer(tx, identity, answer))
  return answer
}

/** What a handler answers until it has its own answer, which takes it at most so many seconds. */
interface EarlyAnswer {
  answer: unknown
  seconds?: number
}

const asLast = (answer: unknown): EarlyAnswer => ({ answer })

/**
 * Claims a key that a rollback has freed, unless another request has taken it since: what that one did stands, and an
 * older error in its place would tell its sender that nothing was done.
 */
async function isFree(tx: Tenant, identity: IdempotentRequest): Promise<boolean> {
  try {
    return (await claimIdempotencyKey(tx, identity)) === undefined
  } catch (error) {
    if (error instanceof AppError && error.type === 'idempotency_conflict') return false
    throw error
  }
}

/**
 * Refusals from before anything was done, each of which has a cure that the same key must see: a scope is granted or a
 * plan changed (403), a record restored (404), If-Match brought up to date (412), a definition changed (422).
 */
const UNSTORED = [403, 404, 412, 422, 429]

/** A conflict is an answer like any other; what was refused before, or may pass, is not. */
function isStorable(error: unknown): error is AppError {
  if (!(error instanceof AppError)) return false
  const status = STATUS[error.type]
  return status < 500 && !UNSTORED.includes(status) && error.type !== 'idempotency_conflict'
}

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
