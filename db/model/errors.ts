import { toStorable } from '../../workflows/shared/storable-text.ts'

/**
 * All error types, as a closed union. All code throws `AppError`; only `api/http/errors.ts` turns it into a status and
 * the error envelope.
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
  | 'idempotency_in_progress'
  | 'version_conflict'
  | 'conflict'
  | 'gone'
  | 'payload_too_large'
  | 'unsupported_media_type'
  | 'validation_error'
  | 'rate_limited'
  | 'quota_exceeded'
  | 'plan_limit'
  | 'method_not_allowed'
  | 'internal_error'
  | 'unavailable'

/** A problem in the input. `loc` starts with the part of the request: `["body", "email"]`. */
export interface Issue {
  loc: (string | number)[]
  msg: string
  type: string
  input?: unknown
  /** How to correct it. The first hint is also the `hint` of the error. */
  hint?: string
}

/** Keeps only the first issue of each `loc`. */
export function firstOfEachLoc<T extends Pick<Issue, 'loc'>>(issues: T[]): T[] {
  const byLoc = new Map<string, T>()
  for (const issue of issues) {
    const key = JSON.stringify(issue.loc)
    if (!byLoc.has(key)) byLoc.set(key, issue)
  }
  return [...byLoc.values()]
}

/** The optional members of the error envelope, named as they appear on the wire. */
export interface ErrorDetails {
  hint?: string
  param?: string
  candidates?: unknown[]
  validation?: unknown
  /** What stands against the migration of a run: of each the code, node, message and hint. */
  obstacles?: unknown[]
  /** What a workflow needs and that is not there, as findings of validation. */
  missing?: unknown[]
  merged_into?: string
  /** Issues of a `validation_error`; they become the `detail` list of a 422. */
  issues?: Issue[]
  /** Seconds; sent as `Retry-After`. */
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

/** A `validation_error`. Its message names the fields, since many clients show only the message. */
export function invalid(issues: Issue[]): AppError {
  const [first] = issues
  const names = [...new Set(issues.map(({ loc }) => nameOf(loc)))]
  const message =
    first && issues.length === 1
      ? `${nameOf(first.loc)}: ${first.msg}`
      : `${issues.length} fields are invalid: ${names.slice(0, MAX_NAMED).join(', ')}${names.length > MAX_NAMED ? ', …' : ''}`
  return new AppError('validation_error', message, { issues })
}

/** All issues with their hints in one text, for readers who see only the text. */
export function fullMessage({ message, details: { issues = [], hint } }: AppError): string {
  const full = (text: string, hint: string | undefined) => (hint ? `${text}: ${hint}` : text)
  if (issues.length === 0) return full(message, hint)
  return issues
    .map(({ loc, msg, hint }) => full(`${nameOf(loc)}: ${msg}`, hint))
    .join('; ')
    .slice(0, 2_000)
}

/**
 * The path of an issue, such as `custom_fields.tier`, or the part of the request for an issue of the whole part.
 * Without NUL: clients choose some names, and messages are also stored as text.
 */
const nameOf = ([part, ...path]: Issue['loc']): string =>
  toStorable(path.length > 0 ? path.join('.') : String(part)).slice(0, 100)

/** Only the log contains the cause. */
export const internalError = (hint?: string) =>
  new AppError('internal_error', 'something went wrong on our side', hint ? { hint } : {})

export const conflict = (message: string, details: ErrorDetails = {}) =>
  new AppError('conflict', message, details)
