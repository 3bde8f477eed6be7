import { includesRole, type MemberRole, ROLE_SCOPES } from '../../../db/model/access/roles.ts'
import { AppError } from '../../../db/model/errors.ts'
import { appRoutes } from '../../app/route-table.ts'
import { requireScopes } from '../../http/scopes.ts'
import { routes } from '../../v1/route-table.ts'

/**
 * Throws `insufficient_scope` if a role may not call an operation. It asks for what the operation itself asks for, which
 * checks it again.
 */
export function requireOperation(role: MemberRole, operation: string): void {
  const own = appRoutes.find(({ id }) => id === operation)
  if (own) {
    if (own.role === 'public' || includesRole(role, own.role)) return
    throw new AppError('insufficient_scope', `the operation requires the role ${own.role}`)
  }
  const scope = routes.find(({ id }) => id === operation)?.scope
  if (typeof scope !== 'string' || scope === 'any')
    throw new Error(`the operation ${operation} has no scope of its own`)
  requireScopes({ type: 'user', scopes: ROLE_SCOPES[role] }, [scope])
}
