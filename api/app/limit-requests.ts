import type Koa from 'koa'
import { NIL } from 'uuid'
import type { LimitWindows } from '../../db/access/limits.ts'
import type { AppDeps } from '../deps.ts'
import { clientIp, subnetOf } from '../http/client-ip.ts'
import { limitIn, ofOrganization } from '../http/rate-limit.ts'
import type { Caller } from '../http/scopes.ts'
import type { SessionCaller } from './session-caller.ts'

/** Requests per minute of one user in an organization, over all sessions: more than a person needs. */
export const MAX_USER_REQUESTS = 600
/** Requests per minute from one address to routes without a session. Sign-in has lower limits of its own. */
export const MAX_PUBLIC_REQUESTS = 120

/** Counts a request with a session. Throws rate_limited. */
export const limitUser = (ctx: Koa.Context, caller: Caller, windows: LimitWindows): Promise<void> =>
  limitIn(ctx, windows, caller.organization.id, [ofUser(caller)])

/** Counts a request with a session, also against the limit that the organization's keys share. Throws rate_limited. */
export const limitUserAndOrganization = (
  ctx: Koa.Context,
  caller: SessionCaller,
  windows: LimitWindows,
): Promise<void> => limitIn(ctx, windows, caller.organization.id, [ofUser(caller), ofOrganization(caller)])

const ofUser = ({ id }: Caller) =>
  ({ policy: 'user', subject: `user:${id}`, limit: MAX_USER_REQUESTS }) as const

/** Counts a request to a public route. Throws rate_limited. */
export const limitAddress = (ctx: Koa.Context, deps: AppDeps, windows: LimitWindows): Promise<void> =>
  limitIn(ctx, windows, NIL, [
    {
      policy: 'address',
      limit: MAX_PUBLIC_REQUESTS,
      subject: `public ${subnetOf(clientIp(ctx.req, deps.config.TRUSTED_PROXIES))}`,
    },
  ])
