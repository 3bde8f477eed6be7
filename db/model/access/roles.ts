import { kindNames } from '../../../workflows/shared/record-kinds.ts'
import { allows, SCOPES, type Scope } from './scopes.ts'

/** The roles of members, most powerful first. */
export const MEMBER_ROLES = ['owner', 'admin', 'member'] as const
export type MemberRole = (typeof MEMBER_ROLES)[number]

/** The scopes that sessions of each role have. */
export const ROLE_SCOPES: Record<MemberRole, ReadonlySet<Scope>> = {
  owner: new Set(SCOPES),
  admin: new Set(SCOPES),
  member: new Set([
    ...kindNames.flatMap((kind) => [`${kind}:read`, `${kind}:write`] as const),
    'workflows:read',
    'workflows:run',
    'knowledge:read',
    'knowledge:write',
    'analytics:read',
    'analytics:write',
    'webhooks:read',
  ]),
}

/** The least powerful role that has this scope. */
export const leastRole = (scope: Scope): MemberRole =>
  MEMBER_ROLES.findLast((role) => allows(ROLE_SCOPES[role], scope))!

/** Whether a role is at least as powerful as another. */
export const includesRole = (role: MemberRole, least: MemberRole): boolean =>
  MEMBER_ROLES.indexOf(role) <= MEMBER_ROLES.indexOf(least)
