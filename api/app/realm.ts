import { includesRole, MEMBER_ROLES } from '../../db/model/access/roles.ts'
import { AppError } from '../../db/model/errors.ts'
import type { AppDeps } from '../deps.ts'
import type { Realm } from '../http/gateway.ts'
import type { AppRoute } from '../http/route.ts'
import { limitAddress, limitUser } from './limit-requests.ts'
import { appRoutes } from './route-table.ts'
import { isSession } from './session-caller.ts'
import { requireCsrfToken, type SessionGate } from './session-gate.ts'

/** The realm /app: settings of organizations and users, with sessions, roles and CSRF tokens. */
export function appRealm(deps: AppDeps, gate: SessionGate): Realm<AppRoute> {
  return {
    prefix: '/app',
    routes: appRoutes,
    inspect(route) {
      if (route.role !== 'public' && !MEMBER_ROLES.includes(route.role))
        throw new Error(`${route.method} /app${route.path} declares no role`)
    },
    async authenticate(ctx, route) {
      if (route?.role !== 'public') return gate.authenticate(ctx)
      await limitAddress(ctx, deps, gate.windows)
      return undefined
    },
    limit: (ctx, caller) => limitUser(ctx, caller, gate.windows),
    authorize(ctx, route, _params, caller) {
      if (!isSession(caller) || route.role === 'public') return
      if (!includesRole(caller.session.role, route.role))
        throw new AppError('insufficient_scope', `the operation requires the role ${route.role}`)
      requireCsrfToken(ctx, route, caller.session)
    },
  }
}
