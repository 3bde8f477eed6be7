import type Koa from 'koa'
import type { LimitWindows, Taken } from '../../db/access/limits.ts'
import { limitOf } from '../../db/access/plans.ts'
import { AppError } from '../../db/errors.ts'
import type { KeyCaller } from './auth.ts'

export const WINDOW_SECONDS = 60

/** Counts a request in the windows of the key and the organization, and sets the headers. Throws rate_limited. */
export async function limitRate(ctx: Koa.Context, caller: KeyCaller, windows: LimitWindows): Promise<void> {
  const { organization, limits } = caller
  const rule = (subject: string, limit: number) => ({
    organizationId: organization.id,
    subject,
    limit,
    period: WINDOW_SECONDS,
  })
  const subscription = { plan: organization.plan, limits }
  const key = await windows.take(
    rule(`key:${caller.id}`, limitOf(subscription, 'requests_per_minute_per_key')),
  )
  const shared = key.allowed
    ? await windows.take(rule('organization', limitOf(subscription, 'requests_per_minute')))
    : undefined
  // The headers describe the window with fewer requests left.
  const lowest = shared && (!shared.allowed || shared.remaining < key.remaining) ? shared : key
  const policy = lowest === key ? 'key' : 'organization'
  requireAllowed(ctx, lowest, policy)
}

/** Sets the headers of a window. Throws rate_limited if it has no request left. */
export function requireAllowed(ctx: Koa.Context, taken: Taken, policy: string): void {
  setLimitHeaders(ctx, taken, policy)
  if (!taken.allowed) throw rateLimited(`the ${policy} exceeds ${taken.limit} requests per minute`, taken)
}

export const rateLimited = (message: string, taken: Taken): AppError =>
  new AppError('rate_limited', message, { retry_after: secondsLeft(taken) })

/** Seconds until the window ends, for Retry-After. */
const secondsLeft = ({ resetsAt }: Taken): number => Math.max(1, Math.ceil(resetsAt - Date.now() / 1000))

export function setLimitHeaders(ctx: Koa.Context, taken: Taken, policy: string): void {
  const { res } = ctx
  res.setHeader('X-RateLimit-Limit', taken.limit)
  res.setHeader('X-RateLimit-Remaining', taken.remaining)
  res.setHeader('X-RateLimit-Reset', taken.resetsAt)
  res.setHeader('RateLimit-Policy', `"${policy}";q=${taken.limit};w=${WINDOW_SECONDS}`)
  res.setHeader('RateLimit', `"${policy}";r=${taken.remaining};t=${secondsLeft(taken)}`)
}
