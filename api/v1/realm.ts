import { LimitWindows } from '../../db/access/limits.ts'
import { kindNames } from '../../db/model/records/kinds/index.ts'
import { limitUserAndOrganization } from '../app/limit-requests.ts'
import type { SessionCaller } from '../app/session-caller.ts'
import { requireCsrfToken, type SessionGate } from '../app/session-gate.ts'
import type { AppDeps } from '../deps.ts'
import { KeyAuthentication, type KeyCaller } from '../http/auth.ts'
import { FailedCredentials } from '../http/failed-credentials.ts'
import type { Realm } from '../http/gateway.ts'
import { limitKey } from '../http/rate-limit.ts'
import type { Route } from '../http/route.ts'
import { requireScopes, SCOPES, type Scope } from '../http/scopes.ts'
import { routes } from './route-table.ts'

/** The members that both realms of these routes share. */
const table: Pick<Realm<Route>, 'routes' | 'hintFor' | 'inspect'> = {
  routes,
  hintFor: (path) =>
    /^(?:\/app)?\/v1\/(objects|custom-fields)\//.test(path)
      ? `the kinds are ${kindNames.join(', ')}`
      : undefined,
  inspect(route) {
    const depends = typeof route.scope === 'function' || isOfRecords(route.scope)
    const named = depends ? [] : [route.scope as Scope | 'any' | Scope[]].flat()
    const known = named.every((scope) => scope === 'any' || SCOPES.includes(scope))
    if (!known || (named.length === 0 && !depends))
      throw new Error(`${route.method} /v1${route.path} declares no known scope`)
  },
}

/** /v1: keys, their scopes (default deny) and their limits. */
export function v1Realm(deps: AppDeps): Realm<Route> {
  const windows = new LimitWindows(deps.db.system)
  const failures = new FailedCredentials(deps, windows)
  const keys = new KeyAuthentication(deps)
  return {
    ...table,
    prefix: '/v1',
    authenticate: (ctx) =>
      failures.guard(ctx, ctx.req.headers.authorization, () => keys.authenticate(ctx.req)),
    presume: ({ req }) => keys.presume(req),
    limit: (ctx, caller) => limitKey(ctx, caller as KeyCaller, windows),
    authorize: (_ctx, route, params, caller) => requireScopes(caller, neededScopes(route, params)),
  }
}

/**
 * The realm /app/v1: the same operations for a session, with the scopes of the user's role. Requests count against the
 * limit of the user and against that of the organization's plan, which its keys share.
 */
export function sessionV1Realm(gate: SessionGate): Realm<Route> {
  return {
    ...table,
    prefix: '/app/v1',
    authenticate: (ctx) => gate.authenticate(ctx),
    limit: (ctx, caller) => limitUserAndOrganization(ctx, caller as SessionCaller, gate.windows),
    authorize(ctx, route, params, caller) {
      requireScopes(caller, neededScopes(route, params))
      requireCsrfToken(ctx, route, (caller as SessionCaller).session)
    },
  }
}

/** The scopes that a route needs before its handler runs; those of `ofRecords` the handler requires. */
export function neededScopes(route: Route, params: unknown): readonly Scope[] {
  if (route.scope === 'any' || isOfRecords(route.scope)) return []
  if (typeof route.scope === 'function') return route.scope(params)
  return typeof route.scope === 'string' ? [route.scope] : route.scope
}

export const isOfRecords = (
  scope: Route['scope'],
): scope is Extract<Route['scope'], { ofRecords: unknown }> =>
  typeof scope === 'object' && !Array.isArray(scope)
