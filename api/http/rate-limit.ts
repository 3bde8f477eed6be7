import type Koa from 'koa'
import type { LimitWindows, Taken } from '../../db/access/limits.ts'
import { limitOf } from '../../db/access/plans.ts'
import { AppError } from '../../db/errors.ts'
import type { KeyCaller } from './auth.ts'

const WINDOW_SECONDS = 60

/** Takes one request of the key's and the organization's minute, and says on the answer what is left. Throws rate_limited. */
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
  const whole = key.allowed
    ? await windows.take(rule('organization', limitOf(subscription, 'requests_per_minute')))
    : undefined
  // Whichever has less left rules.
  const ruling = whole && (!whole.allowed || whole.remaining < key.remaining) ? whole : key
  const seconds = Math.max(1, Math.ceil(ruling.resetsAt - Date.now() / 1000))
  setLimitHeaders(ctx, ruling, seconds, ruling === key ? 'key' : 'organization')
  if (!ruling.allowed)
    throw new AppError(
      'rate_limited',
      `more than ${ruling.limit} requests a minute of this ${ruling === key ? 'key' : 'organization'}`,
      { retry_after: seconds },
    )
}

function setLimitHeaders(ctx: Koa.Context, taken: Taken, seconds: number, policy: string): void {
  const { res } = ctx
  res.setHeader('X-RateLimit-Limit', taken.limit)
  res.setHeader('X-RateLimit-Remaining', taken.remaining)
  res.setHeader('X-RateLimit-Reset', taken.resetsAt)
  res.setHeader('RateLimit-Policy', `"${policy}";q=${taken.limit};w=${WINDOW_SECONDS}`)
  res.setHeader('RateLimit', `"${policy}";r=${taken.remaining};t=${seconds}`)
}
