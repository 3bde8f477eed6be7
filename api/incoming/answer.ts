import type { Issue } from '../../db/errors.ts'
import { toAppError } from '../http/errors.ts'

/** The errors of the receiver; `error` on the wire. */
export type RefusalCode =
  | 'not_found'
  | 'method_not_allowed'
  | 'webhook_inactive'
  | 'ip_not_allowed'
  | 'blocked'
  | 'missing_secret'
  | 'invalid_secret'
  | 'stale_timestamp'
  | 'rate_limited'
  | 'quota_exceeded'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'invalid_payload'
  | 'validation_failed'
  | 'unavailable'
  | 'internal_error'

const STATUS: Record<RefusalCode, number> = {
  not_found: 404,
  method_not_allowed: 405,
  webhook_inactive: 403,
  ip_not_allowed: 403,
  blocked: 429,
  missing_secret: 401,
  invalid_secret: 401,
  stale_timestamp: 401,
  rate_limited: 429,
  quota_exceeded: 429,
  payload_too_large: 413,
  unsupported_media_type: 415,
  invalid_payload: 400,
  validation_failed: 400,
  unavailable: 503,
  internal_error: 500,
}

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

  constructor(
    code: RefusalCode,
    message: string,
    more: { details?: Record<string, string>; retryAfter?: number } = {},
  ) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.details = more.details
    this.retryAfter = more.retryAfter
  }

  get status(): number {
    return STATUS[this.code]
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
    }
  }
}

/** Converts any error to a refusal. An error that the payload did not cause is 5xx, so that the sender retries. */
export function toRefusal(thrown: unknown): Refusal {
  if (thrown instanceof Refusal) return thrown
  const { type, message, details } = toAppError(thrown)
  switch (type) {
    case 'payload_too_large':
    case 'unsupported_media_type':
      return new Refusal(type, message)
    case 'invalid_request':
      return new Refusal('invalid_payload', message)
    case 'validation_error':
      return new Refusal('validation_failed', message, { details: toDetails(details.issues ?? []) })
    case 'conflict':
      return new Refusal('validation_failed', message, { details: { [details.param ?? 'record']: message } })
    case 'unavailable':
      return new Refusal('unavailable', message, { retryAfter: details.retry_after ?? 1 })
    default:
      return new Refusal('internal_error', 'something went wrong on our side')
  }
}

/** The issues of the record's schema as `details`: field → reason. */
export function toDetails(issues: Issue[]): Record<string, string> {
  return Object.fromEntries(issues.map((issue) => [issue.loc.slice(1).join('.') || 'payload', issue.msg]))
}

/** Seconds until `epochSeconds`, at least one. */
export const secondsUntil = (epochSeconds: number) => Math.max(1, Math.ceil(epochSeconds - Date.now() / 1000))
