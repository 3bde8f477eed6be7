import { failureOf, REFUSALS, type RefusalCode } from '../../db/model/incoming/refusals.ts'
import { entityOf } from '../../db/model/incoming/target-entity.ts'
import type { IncomingWebhook } from '../../db/model/incoming/types.ts'
import { toAppError } from '../http/errors.ts'

/** Logged as Blocked; all other codes are logged as Failed. */
const BLOCKED: readonly RefusalCode[] = [
  'webhook_inactive',
  'ip_not_allowed',
  'blocked',
  'rate_limited',
  'quota_exceeded',
]

/** A refused request, in the error shape of the receiver. */
export class Refusal extends Error {
  readonly code: RefusalCode
  /** Field → reason. */
  readonly details: Record<string, string> | undefined
  /** Seconds. */
  readonly retryAfter: number | undefined
  /** The outcome of each record of a batch, each of which has its own log row. */
  readonly results: object[] | undefined

  constructor(
    code: RefusalCode,
    message: string,
    more: { details?: Record<string, string> | undefined; retryAfter?: number; results?: object[] } = {},
  ) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.details = more.details
    this.retryAfter = more.retryAfter
    this.results = more.results
  }

  get status(): number {
    return REFUSALS[this.code]
  }

  get logStatus(): 'Blocked' | 'Failed' {
    return BLOCKED.includes(this.code) ? 'Blocked' : 'Failed'
  }

  get body(): object {
    return {
      success: false,
      error: this.code,
      message: this.message,
      ...(this.details ? { details: this.details } : {}),
      ...(this.retryAfter === undefined ? {} : { retry_after: this.retryAfter }),
      ...(this.results ? { results: this.results } : {}),
    }
  }
}

/** Converts any error to a refusal. An error that the payload did not cause is 5xx, so that the sender retries. */
export function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  const error = toAppError(thrown)
  const failure = failureOf(error)
  if (failure) return new Refusal(failure.code, failure.message, failure)
  if (error.type === 'unavailable')
    return new Refusal('unavailable', error.message, { retryAfter: error.details.retry_after ?? 1 })
  return new Refusal('internal_error', 'something went wrong on our side')
}

/** The answer to a request that writes nothing. */
export const skipped = (
  { webhook }: { webhook: Pick<IncomingWebhook, 'kind'> },
  message: string,
): object => ({
  success: true,
  message,
  record_id: null,
  entity: entityOf(webhook.kind),
  action: 'skipped',
})

/** Seconds until `epochSeconds`, at least one. */
export const secondsUntil = (epochSeconds: number) => Math.max(1, Math.ceil(epochSeconds - Date.now() / 1000))
