import type Koa from 'koa'
import { NIL } from 'uuid'
import type { LimitWindows } from '../../db/access/limits.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, subnetOf } from '../http/client-ip.ts'
import { requireAllowed, WINDOW_SECONDS } from '../http/rate-limit.ts'
import type { Caller } from '../http/scopes.ts'

/** Requests per minute of one user in an organization, over all sessions: more than a person needs. */
export const MAX_USER_REQUESTS = 600
/** Requests per minute from one address to routes without a session. Sign-in has lower limits of its own. */
export const MAX_PUBLIC_REQUESTS = 120

/** Counts a request with a session. Throws rate_limited. */
export async function limitUser(ctx: Koa.Context, caller: Caller, windows: LimitWindows): Promise<void> {
  await take(ctx, windows, 'user', {
    organizationId: caller.organization.id,
    subject: `user:${caller.id}`,
    limit: MAX_USER_REQUESTS,
  })
}

/** Counts a request to a public route. Throws rate_limited. */
export async function limitAddress(ctx: Koa.Context, deps: AppDeps, windows: LimitWindows): Promise<void> {
  const address = subnetOf(clientIp(ctx.req, deps.config.TRUSTED_PROXIES))
  await take(ctx, windows, 'address', {
    organizationId: NIL,
    subject: `public ${address}`,
    limit: MAX_PUBLIC_REQUESTS,
  })
}

async function take(
  ctx: Koa.Context,
  windows: LimitWindows,
  policy: 'user' | 'address',
  rule: { organizationId: string; subject: string; limit: number },
): Promise<void> {
  requireAllowed(ctx, await windows.take({ ...rule, period: WINDOW_SECONDS }), policy)
}
