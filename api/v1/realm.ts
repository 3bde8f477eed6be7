import { LimitWindows } from '../../db/access/limits.ts'
import { entityNames } from '../../db/records/model/kinds/index.ts'
import type { AppDeps } from '../deps.ts'
import { authenticateKey, type KeyCaller, keyLookup } from '../http/auth.ts'
import { FailedCredentials } from '../http/failed-credentials.ts'
import type { Realm } from '../http/gateway.ts'
import { limitRate } from '../http/rate-limit.ts'
import type { Route } from '../http/route.ts'
import { requireScopes, SCOPES, type Scope } from '../http/scopes.ts'
import { routes } from './route-table.ts'

/** /v1: keys, their scopes (default deny) and their limits. */
export function v1Realm(deps: AppDeps): Realm<Route> {
  const windows = new LimitWindows(deps.db.system)
  const failures = new FailedCredentials(deps, windows)
  const findHolder = keyLookup(deps.db.system)
  return {
    prefix: '/v1',
    hintFor: (path) =>
      /^\/v1\/(objects|custom-fields)\//.test(path) ? `the kinds are ${entityNames.join(', ')}` : undefined,
    routes,
    inspect(route) {
      const depends = typeof route.scope === 'function' || isOfRecords(route.scope)
      const named = depends ? [] : [route.scope as Scope | 'any' | Scope[]].flat()
      const known = named.every((scope) => scope === 'any' || SCOPES.includes(scope))
      if (!known || (named.length === 0 && !depends))
        throw new Error(`${route.method} /v1${route.path} declares no known scope`)
    },
    authenticate: (ctx) =>
      failures.guard(ctx, ctx.req.headers.authorization, () => authenticateKey(ctx.req, deps, findHolder)),
    limit: (ctx, caller) => limitRate(ctx, caller as KeyCaller, windows),
    authorize: (_ctx, route, params, caller) => requireScopes(caller, neededScopes(route, params)),
  }
}

function neededScopes(route: Route, params: unknown): readonly Scope[] {
  if (route.scope === 'any' || isOfRecords(route.scope)) return []
  if (typeof route.scope === 'function') return route.scope(params)
  return typeof route.scope === 'string' ? [route.scope] : route.scope
}

const isOfRecords = (scope: Route['scope']): scope is Extract<Route['scope'], { ofRecords: unknown }> =>
  typeof scope === 'object' && !Array.isArray(scope)
