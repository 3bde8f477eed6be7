import { type IdPage, pageById } from '../lists/id-list.ts'
import type { Page } from '../lists/page.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import type { MemberRole } from './roles.ts'

/** A member of an organization as API clients see it: without the email address. */
export interface Member {
  id: string
  name: string
  role: MemberRole
}

/** One page of members, oldest first. Throws `invalid_request` for a cursor of another list. */
export function listMembers(tx: Tenant, page: IdPage): Promise<Page<Member>> {
  const rows = tx.trx
    .from(
      tx
        .trx('memberships as m')
        .join('users as u', 'u.id', 'm.user_id')
        .where('m.organization_id', tx.organizationId)
        .select('u.id', 'u.name', 'm.role')
        .as('members'),
    )
    .select('id', 'name', 'role')
  return pageById(tx, rows, page, { of: ['users'], order: 'asc' })
}

/** The users among `userIds` that are members of the organization. */
export async function membersAmong(tx: Tenant, userIds: string[]): Promise<Set<string>> {
  if (userIds.length === 0) return new Set()
  const rows = await tx
    .trx('memberships')
    .where({ organization_id: tx.organizationId })
    .whereIn('user_id', userIds)
    .select<{ user_id: string }[]>('user_id')
  return new Set(rows.map((row) => row.user_id))
}
