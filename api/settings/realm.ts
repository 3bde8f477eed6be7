import { timingSafeEqual } from 'node:crypto'
import type Koa from 'koa'
import { LimitWindows } from '../../db/access/limits.ts'
import { includesRole, MEMBER_ROLES } from '../../db/access/roles.ts'
import { findSession, type Session } from '../../db/access/sessions.ts'
import { AppError } from '../../db/errors.ts'
import { isHttps } from '../config.ts'
import type { AppDeps } from '../deps.ts'
import { FailedCredentials } from '../http/failed-credentials.ts'
import type { Realm } from '../http/gateway.ts'
import type { AppRoute } from '../http/route.ts'
import { sessionToken } from './cookie.ts'
import { limitAddress, limitUser } from './limit-requests.ts'
import { appRoutes } from './route-table.ts'
import { isSession, toCaller } from './session-caller.ts'

/** /app: the routes of the settings, with sessions, roles and CSRF tokens. */
export function appRealm(deps: AppDeps): Realm<AppRoute> {
  const windows = new LimitWindows(deps.db.system)
  const failures = new FailedCredentials(deps, windows)
  return {
    prefix: '/app',
    routes: appRoutes,
    inspect(route) {
      if (route.role !== 'public' && !MEMBER_ROLES.includes(route.role))
        throw new Error(`${route.method} /app${route.path} declares no role`)
    },
    async authenticate(ctx, route) {
      if (route?.role === 'public') {
        await limitAddress(ctx, deps, windows)
        return undefined
      }
      const { authorization, cookie } = ctx.req.headers
      const token = sessionToken(cookie, isHttps(deps.config))
      return failures.guard(ctx, token, async () => {
        // A request with a key is refused, also with a valid session.
        const session = token && !authorization ? await findSession(deps.db.system, token) : undefined
        if (!session) throw new AppError('unauthorized', 'sign in first')
        return toCaller(session)
      })
    },
    limit: (ctx, caller) => limitUser(ctx, caller, windows),
    authorize(ctx, route, _params, caller) {
      if (!isSession(caller) || route.role === 'public') return
      if (!includesRole(caller.session.role, route.role))
        throw new AppError('insufficient_scope', `the operation requires the role ${route.role}`)
      if (route.method !== 'GET') requireCsrfToken(ctx, caller.session)
    },
  }
}

function requireCsrfToken(ctx: Koa.Context, session: Session): void {
  const given = Buffer.from(ctx.get('X-CSRF-Token'))
  const expected = Buffer.from(session.csrf_token)
  if (given.length === expected.length && timingSafeEqual(given, expected)) return
  const wrong = given.length === 0 ? 'is missing' : 'does not match the session'
  throw new AppError('csrf_token_invalid', `the X-CSRF-Token header ${wrong}`, {
    param: 'X-CSRF-Token',
    hint: 'send the csrf_token of GET /app/session',
  })
}
