/**
 * What can go wrong, as one closed union. Every room throws `AppError`; `api/http/errors.ts` is the one place
 * that turns it into a status and the error envelope.
 */
export type ErrorType =
  | 'unauthorized'
  | 'insufficient_scope'
  | 'csrf_token_invalid'
  | 'not_found'
  | 'invalid_request'
  | 'ambiguous_name'
  | 'workflow_invalid'
  | 'idempotency_conflict'
  | 'version_conflict'
  | 'conflict'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'validation_error'
  | 'rate_limited'
  | 'quota_exceeded'
  | 'plan_limit'
  | 'method_not_allowed'
  | 'internal_error'
  | 'unavailable'

/** One thing wrong with the input. `loc` starts with the part of the request: `["body", "email"]`. */
export interface Issue {
  loc: (string | number)[]
  msg: string
  type: string
  input?: unknown
  /** What to do about it; the first one becomes the `hint` of the error. */
  hint?: string
}

/** The optional members of the error envelope, named as they appear on the wire. */
export interface ErrorDetails {
  hint?: string
  param?: string
  candidates?: unknown[]
  validation?: unknown
  merged_into?: string
  /** Issues of a `validation_error`; they become the `detail` list of a 422. */
  issues?: Issue[]
  /** Seconds, for `Retry-After`. */
  retry_after?: number
}

export class AppError extends Error {
  readonly type: ErrorType
  readonly details: ErrorDetails

  constructor(type: ErrorType, message: string, details: ErrorDetails = {}) {
    super(message)
    this.name = 'AppError'
    this.type = type
    this.details = details
  }
}

export const notFound = (what: string, hint?: string) =>
  new AppError('not_found', `${what} not found`, hint ? { hint } : {})

export const invalid = (issues: Issue[]) =>
  new AppError(
    'validation_error',
    issues.length === 1 ? issues[0]!.msg : `${issues.length} fields are invalid`,
    {
      issues,
    },
  )

export const conflict = (message: string, details: ErrorDetails = {}) =>
  new AppError('conflict', message, details)
