import type { AppError, Issue } from '../errors.ts'

/** The errors of the receiver and their statuses; `error` on the wire and in the log. */
export const REFUSALS = {
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
} as const

export type RefusalCode = keyof typeof REFUSALS

/** Refused before the request counted in the month's quota. */
export const UNCOUNTED: readonly string[] = ['rate_limited', 'quota_exceeded'] satisfies RefusalCode[]

/** What is wrong with a payload. `details`: field → reason. */
export interface Failure {
  code: 'payload_too_large' | 'unsupported_media_type' | 'invalid_payload' | 'validation_failed'
  message: string
  details?: Record<string, string>
}

/** The failure that the payload caused; undefined for an error of another cause. */
export function failureOf({ type, message, details }: AppError): Failure | undefined {
  switch (type) {
    case 'payload_too_large':
    case 'unsupported_media_type':
      return { code: type, message }
    case 'invalid_request':
      return { code: 'invalid_payload', message }
    case 'validation_error':
      return { code: 'validation_failed', message, details: toDetails(details.issues ?? []) }
    case 'conflict':
      return { code: 'validation_failed', message, details: { [details.param ?? 'record']: message } }
    default:
      return undefined
  }
}

/** The issues of the record's schema as `details`. */
export function toDetails(issues: Issue[]): Record<string, string> {
  return Object.fromEntries(issues.map((issue) => [issue.loc.slice(1).join('.') || 'payload', issue.msg]))
}
