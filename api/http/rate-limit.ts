import type Koa from 'koa'
import type { LimitWindows, Taken } from '../../db/access/limits.ts'
import { limitOf, type Subscription } from '../../db/access/plans.ts'
import { AppError } from '../../db/model/errors.ts'
import type { GrantCaller } from '../oauth/authenticate.ts'
import type { KeyCaller } from './auth.ts'
import type { Caller } from './scopes.ts'

export const WINDOW_SECONDS = 60

/** A rate-limit window that counts a request. */
interface Counted {
  /** The name of the limit in headers and errors. */
  policy: 'key' | 'grant' | 'user' | 'address' | 'organization'
  subject: string
  limit: number
}

/** Counts a request in the windows of the key and the organization, and sets the headers. Throws rate_limited. */
export const limitKey = (ctx: Koa.Context, caller: KeyCaller, windows: LimitWindows): Promise<void> =>
  limitCredential(ctx, caller, { policy: 'key', id: caller.id }, windows)

/** Counts a request of an assistant, whose grant has the limit of a key. Throws rate_limited. */
export const limitGrant = (ctx: Koa.Context, caller: GrantCaller, windows: LimitWindows): Promise<void> =>
  limitCredential(ctx, caller, { policy: 'grant', id: caller.grantId }, windows)

const limitCredential = (
  ctx: Koa.Context,
  caller: Subscribed,
  { policy, id }: { policy: 'key' | 'grant'; id: string },
  windows: LimitWindows,
): Promise<void> =>
  limitIn(ctx, windows, caller.organization.id, [
    {
      policy,
      subject: `${policy}:${id}`,
      limit: limitOf(subscriptionOf(caller), 'requests_per_minute_per_key'),
    },
    ofOrganization(caller),
  ])

/** The window that counts all requests of the organization to the operations of /v1. */
export const ofOrganization = (caller: Subscribed): Counted => ({
  policy: 'organization',
  subject: 'organization',
  limit: limitOf(subscriptionOf(caller), 'requests_per_minute'),
})

type Subscribed = Caller & Pick<Subscription, 'limits'>
const subscriptionOf = ({ organization: { plan }, limits }: Subscribed): Subscription => ({ plan, limits })

/**
 * Counts a request in several windows, until one of them is exhausted. The headers describe the window with the fewest
 * requests left. Throws rate_limited.
 */
export async function limitIn(
  ctx: Koa.Context,
  windows: LimitWindows,
  organizationId: string,
  all: Counted[],
): Promise<void> {
  let lowest: { taken: Taken; policy: string } | undefined
  for (const { policy, subject, limit } of all) {
    const taken = await windows.take({ organizationId, subject, limit, period: WINDOW_SECONDS })
    if (!lowest || !taken.allowed || taken.remaining < lowest.taken.remaining) lowest = { taken, policy }
    if (!taken.allowed) break
  }
  if (lowest) requireAllowed(ctx, lowest.taken, lowest.policy)
}

/** Sets the headers of a window. Throws rate_limited if the window is exhausted. */
function requireAllowed(ctx: Koa.Context, taken: Taken, policy: string): void {
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
