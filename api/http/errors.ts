import type Koa from 'koa'
import { AppError, type ErrorType } from '../../db/errors.ts'
import type { Logger } from '../../db/log.ts'
import { isDatabaseUnavailable, isStatementTimeout } from '../../db/postgres/sql-state.ts'

/** The one place that turns an error into a status. */
export const STATUS: Record<ErrorType, number> = {
  unauthorized: 401,
  insufficient_scope: 403,
  csrf_token_invalid: 403,
  not_found: 404,
  invalid_request: 400,
  ambiguous_name: 400,
  workflow_invalid: 400,
  idempotency_conflict: 409,
  version_conflict: 412,
  conflict: 409,
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

/** The error envelope, and beside it the framework validation shape of a 422. */
export function errorBody(error: AppError, requestId: string): object {
  const { issues, retry_after: _, ...details } = error.details
  const shown = { type: error.type, message: error.message, request_id: requestId }
  if (!issues) return { error: { ...shown, ...details } }
  const hint = issues.find((issue) => issue.hint)?.hint
  return {
    error: { ...shown, ...(hint ? { hint } : {}), ...details },
    detail: issues,
  }
}

/** Answers with an error. What is not an AppError is logged whole, and told to nobody. */
export function answerError(ctx: Koa.Context, error: unknown, requestId: string, log: Logger): void {
  const known = toAppError(error)
  if (known !== error) log.error({ err: forLog(error), request_id: requestId }, 'request failed')
  if (known.details.retry_after !== undefined) ctx.set('Retry-After', String(known.details.retry_after))
  if (known.type === 'unauthorized') ctx.set('WWW-Authenticate', 'Bearer')
  // What is left of a body that was refused unread would be read for nothing: the connection ends instead.
  if (known.type === 'payload_too_large') ctx.set('Connection', 'close')
  ctx.status = STATUS[known.type]
  ctx.body = errorBody(known, requestId)
}

/** What a log may say of an error: PostgreSQL's other members (detail, where) hold values of the row. */
export function forLog(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack } = error
  return { name, message, stack, code: (error as NodeJS.ErrnoException).code }
}

/** Turns any error into one that has an answer: one that is no AppError becomes `unavailable` or `internal_error`. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (isStatementTimeout(error))
    return new AppError('unavailable', 'this took too long and was stopped', {
      hint: 'ask for less at once: more filters, fewer records, count=none, or a sort by created_at',
      retry_after: 1,
    })
  if (isDatabaseUnavailable(error))
    return new AppError('unavailable', 'the service is busy or starting: try again', { retry_after: 1 })
  return new AppError('internal_error', 'something went wrong on our side')
}
