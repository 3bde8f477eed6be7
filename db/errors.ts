import { toStorable } from '../workflows/storable-text.ts'

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
  /** What to do about it; the first one is the `hint` of the error, too. */
  hint?: string
}

/** Of each place the first that was found. */
export function eachOnce<T extends Pick<Issue, 'loc'>>(issues: T[]): T[] {
  const byPlace = new Map<string, T>()
  for (const issue of issues) {
    const place = JSON.stringify(issue.loc)
    if (!byPlace.has(place)) byPlace.set(place, issue)
  }
  return [...byPlace.values()]
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

const MAX_NAMED = 10

/** A `validation_error`, whose message names the fields: many read nothing else. */
export function invalid(issues: Issue[]): AppError {
  const [first] = issues
  const names = [...new Set(issues.map(({ loc }) => nameOf(loc)))]
  const message =
    first && issues.length === 1
      ? `${nameOf(first.loc)}: ${first.msg}`
      : `${issues.length} fields are invalid: ${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? ', …' : ''}`
  return new AppError('validation_error', message, { issues })
}

/**
 * `custom_fields.tier`; the part of the request where it is about all of it. Names may be the client's: a message is
 * also kept in places that hold no NUL.
 */
const nameOf = ([part, ...path]: Issue['loc']): string =>
  toStorable(path.length > 0 ? path.join('.') : String(part)).slice(0, 100)

export const conflict = (message: string, details: ErrorDetails = {}) =>
  new AppError('conflict', message, details)
