import { includesRole, type MemberRole, ROLE_SCOPES } from '../../../db/model/access/roles.ts'
import { AppError } from '../../../db/model/errors.ts'
import { appRoutes } from '../../app/route-table.ts'
import { allows, requireScopes, type Scope } from '../../http/scopes.ts'
import { routes } from '../../v1/route-table.ts'

/**
 * Throws `insufficient_scope` if a role may not call an operation. It asks for what the operation itself asks for, which
 * checks it again.
 */
export function requireOperation(role: MemberRole, operation: string): void {
  const least = roleOf(operation)
  if (!least) requireScopes({ type: 'user', scopes: ROLE_SCOPES[role] }, scopesOf(operation))
  else if (!mayCall(role, operation))
    throw new AppError('insufficient_scope', `the operation requires the role ${least}`)
}

/** Whether a role may call an operation: pages show no way to what they may not do. */
export function mayCall(role: MemberRole, operation: string): boolean {
  const least = roleOf(operation)
  if (least) return least === 'public' || includesRole(role, least)
  return scopesOf(operation).every((scope) => allows(ROLE_SCOPES[role], scope))
}

/** The least role that may call an operation of /app; undefined: it is one of /v1. */
const roleOf = (operation: string) => appRoutes.find(({ id }) => id === operation)?.role

/** The scopes of an operation of /v1. Throws if there is no such operation, or if they depend on the request. */
function scopesOf(operation: string): Scope[] {
  const scope = routes.find(({ id }) => id === operation)?.scope
  if (Array.isArray(scope)) return scope
  if (typeof scope !== 'string' || scope === 'any')
    throw new Error(`the operation ${operation} has no scopes of its own`)
  return [scope]
}
