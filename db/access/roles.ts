import { entityNames } from '../../workflows/record-kinds.ts'
import { allows, SCOPES, type Scope } from './scopes.ts'

/** What members of an organization may do, the most powerful role first. */
export const MEMBER_ROLES = ['owner', 'admin', 'member'] as const
export type MemberRole = (typeof MEMBER_ROLES)[number]

/** The scopes of each role: what its sessions may do of what keys can do. */
export const ROLE_SCOPES: Record<MemberRole, ReadonlySet<Scope>> = {
  owner: new Set(SCOPES),
  admin: new Set(SCOPES),
  member: new Set([
    ...entityNames.flatMap((entity) => [`${entity}:read`, `${entity}:write`] as const),
    ...(['workflows:read', 'workflows:run'] as const),
    ...(['knowledge:read', 'knowledge:write'] as const),
    ...(['analytics:read', 'webhooks:read'] as const),
  ]),
}

/** The least powerful role that has this scope. */
export const leastRole = (scope: Scope): MemberRole =>
  MEMBER_ROLES.findLast((role) => allows(ROLE_SCOPES[role], scope))!

/** Whether a role is at least as powerful as another. */
export const includesRole = (role: MemberRole, least: MemberRole): boolean =>
  MEMBER_ROLES.indexOf(role) <= MEMBER_ROLES.indexOf(least)
