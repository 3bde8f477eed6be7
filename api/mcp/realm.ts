import type Koa from 'koa'
import { LimitWindows } from '../../db/access/limits.ts'
import { ACCESS_PREFIX } from '../../db/model/access/oauth-format.ts'
import type { AppDeps } from '../deps.ts'
import { bearerOf } from '../http/auth.ts'
import { FailedCredentials } from '../http/failed-credentials.ts'
import type { Realm } from '../http/gateway.ts'
import { limitGrant } from '../http/rate-limit.ts'
import type { Route } from '../http/route.ts'
import type { Caller } from '../http/scopes.ts'
import { authenticateGrant, type GrantCaller } from '../oauth/authenticate.ts'

/** Who may use /mcp: those who may use /v1, and the tokens of grants, which are for /mcp only. */
export interface AgentRealm extends Pick<Realm<Route>, 'routes'> {
  /** Throws unauthorized. */
  authenticate(ctx: Koa.Context): Promise<Caller>
  /** Counts a request, of a grant like one of a key. Throws rate_limited. */
  limit(ctx: Koa.Context, caller: Caller): Promise<void>
}

export function agentRealm(deps: AppDeps, keys: Realm<Route>): AgentRealm {
  const windows = new LimitWindows(deps.db.system)
  const failures = new FailedCredentials(deps, windows)
  return {
    routes: keys.routes,
    async authenticate(ctx) {
      const token = bearerOf(ctx.req)
      if (!token?.startsWith(ACCESS_PREFIX)) return (await keys.authenticate(ctx, undefined))!
      return failures.guard(ctx, token, () => authenticateGrant(ctx, deps, token))
    },
    async limit(ctx, caller) {
      if (isGrant(caller)) await limitGrant(ctx, caller, windows)
      else await keys.limit?.(ctx, caller)
    },
  }
}

const isGrant = (caller: Caller): caller is GrantCaller => caller.grantId !== undefined
