import type Koa from 'koa'
import { AppError, type ErrorType, internalError } from '../../db/model/errors.ts'
import { isDatabaseUnavailable, isStatementTimeout } from '../../db/postgres/sql-state.ts'
import type { Logger } from '../../db/process/log.ts'

/** The HTTP status of each error type. */
export const STATUS: Record<ErrorType, number> = {
  unauthorized: 401,
  insufficient_scope: 403,
  csrf_token_invalid: 403,
  not_found: 404,
  invalid_request: 400,
  ambiguous_name: 400,
  workflow_invalid: 400,
  idempotency_conflict: 409,
  idempotency_in_progress: 409,
  version_conflict: 412,
  conflict: 409,
  gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  validation_error: 422,
  rate_limited: 429,
  quota_exceeded: 429,
  plan_limit: 403,
  method_not_allowed: 405,
  internal_error: 500,
  unavailable: 503,
}

/** Where /docs explains a type of error: a reference relative to the address of the service, which it may not know. */
export const docUrl = (type: ErrorType): string => `/docs/errors#${type}`

/** The error envelope; for a 422 also `detail`, the framework validation shape. */
export function errorBody(error: AppError, requestId: string): object {
  const { issues, retry_after: _, ...details } = error.details
  const { type, message } = error
  const shown = { type, message, request_id: requestId, doc_url: docUrl(type) }
  if (!issues) return { error: { ...shown, ...details } }
  const hint = issues.find((issue) => issue.hint)?.hint
  return {
    error: { ...shown, ...(hint ? { hint } : {}), ...details },
    detail: issues,
  }
}

/** Responds with an error. An unexpected error is logged in full and not shown to the client. */
export function answerError(ctx: Koa.Context, error: unknown, requestId: string, log: Logger): void {
  const known = toAppError(error)
  if (known !== error) log.error({ err: forLog(error), request_id: requestId }, 'request failed')
  if (known.details.retry_after !== undefined) ctx.set('Retry-After', String(known.details.retry_after))
  if (known.type === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
  ctx.status = STATUS[known.type]
  ctx.body = errorBody(known, requestId)
}

/** The error for a method that the path does not have. Sets `Allow`, which RFC 9110 requires. */
export function methodNotAllowed(ctx: Koa.Context, methods: readonly string[]): AppError {
  const allowed = methods.join(', ')
  ctx.set('Allow', allowed)
  return new AppError('method_not_allowed', `this path does not support ${ctx.method}`, {
    hint: `allowed: ${allowed}`,
  })
}

/** The loggable members of an error. PostgreSQL's other members (detail, where) contain values of the row. */
export function forLog(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack } = error
  return { name, message, stack, code: (error as NodeJS.ErrnoException).code }
}

/** Converts any error to an AppError: an unknown error becomes `unavailable` or `internal_error`. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isStatementTimeout(error))
    return new AppError('unavailable', 'the request exceeded the time limit of the database', {
      hint: 'add filters, request fewer records, set count=none or sort by created_at',
      retry_after: 1,
    })
  if (isDatabaseUnavailable(error))
    return new AppError('unavailable', 'the service is busy or starting: try again', { retry_after: 1 })
  return internalError()
}
