import { type IdPage, pageById } from '../lists/id-list.ts'
import { includesRole, type MemberRole } from '../model/access/roles.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { escapeLike } from '../model/records/like.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { recordChange } from './audit-log.ts'

/** A member of an organization as API clients see it: without the email address. */
export interface Member {
  id: string
  name: string
  role: MemberRole
}

/** A member as the other members see it. */
export interface FullMember extends Member {
  email: string
  created_at: Date
}

/** Which members are listed. */
export interface MemberSearch {
  /** Every word occurs in the name. */
  q?: string | undefined
  /** The whole address: a part of it would tell the addresses of members to those who try. */
  email?: string | undefined
}

/** One page of members, oldest first. Throws `invalid_request` for a cursor of another list. */
export const listMembers = (tx: Tenant, page: IdPage, search: MemberSearch = {}): Promise<Page<Member>> =>
  pageOfMembers(tx, page, ['id', 'name', 'role'], search)

/** The same, with email addresses. */
export const listFullMembers = (tx: Tenant, page: IdPage): Promise<Page<FullMember>> =>
  pageOfMembers(tx, page, ['id', 'name', 'role', 'email', 'created_at'])

function pageOfMembers<T extends Member>(
  tx: Tenant,
  page: IdPage,
  columns: string[],
  { q, email }: MemberSearch = {},
): Promise<Page<T>> {
  const found = members(tx)
  for (const word of (q ?? '').split(/\s+/).filter(Boolean))
    found.whereRaw('lower(u.name) like lower(?)', [`%${escapeLike(word)}%`])
  if (email !== undefined) found.whereRaw('lower(u.email) = lower(?)', [email])
  return pageById(tx, tx.trx.from(found.as('members')).select(columns), page, {
    of: ['users', ...(q === undefined && email === undefined ? [] : [q, email])],
    order: 'asc',
  })
}

const members = (tx: Tenant) =>
  tx
    .trx('memberships as m')
    .join('users as u', 'u.id', 'm.user_id')
    .where('m.organization_id', tx.organizationId)
    .select<FullMember[]>('u.id', 'u.name', 'u.email', 'm.role', 'm.created_at')

/** All members, for texts that name one. */
export const namedUsers = (tx: Tenant): Promise<Pick<FullMember, 'id' | 'name' | 'email'>[]> =>
  members(tx).clearSelect().select('u.id', 'u.name', 'u.email')

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

/** The member with this email address, compared case-insensitively. */
export const memberWithEmail = (tx: Tenant, email: string): Promise<FullMember | undefined> =>
  members(tx).whereRaw('lower(u.email) = lower(?)', [email]).first()

/** The member with this id. */
export const findMember = (tx: Tenant, id: string): Promise<FullMember | undefined> =>
  members(tx).where('u.id', id).first()

/** The members among these ids. */
export async function membersByIds(tx: Tenant, ids: string[]): Promise<FullMember[]> {
  return ids.length === 0 ? [] : await members(tx).whereIn('u.id', ids)
}

/** All members, the oldest first. */
export const membersOf = (tx: Tenant): Promise<FullMember[]> =>
  members(tx).orderBy([{ column: 'm.created_at' }, { column: 'u.id' }])

/** Gives a member another role. Throws not_found, insufficient_scope; conflict for the last owner. */
export async function changeRole(tx: Tenant, userId: string, role: MemberRole): Promise<FullMember> {
  const member = await lockMember(tx, userId)
  await requireMayManage(tx, member.role, role)
  if (member.role === role) return member
  await requireOtherOwner(tx, member)
  await memberships(tx).where({ user_id: userId }).update({ role })
  await withdrawLinks(tx, userId, { invitations: !includesRole(role, member.role) })
  await recordChange(tx, 'member.role_changed', {
    id: userId,
    name: member.name,
    details: { from: member.role, to: role },
  })
  return { ...member, role }
}

/**
 * Locks and returns a member. Transactions that change members of an organization are serialised, so that two owners
 * who demote each other cannot leave it without an owner. Throws not_found.
 */
export async function lockMember(tx: Tenant, userId: string): Promise<FullMember> {
  await lockMembers(tx)
  const member: FullMember | undefined = await members(tx).where('m.user_id', userId).first()
  if (!member) throw notFound('member')
  return member
}

/** Serialises the transactions that change members of the organization. */
export const lockMembers = (tx: Tenant): Promise<unknown> =>
  tx.trx('organizations').where({ id: tx.organizationId }).forNoKeyUpdate().first('id')

/**
 * Throws insufficient_scope unless the actor's role includes these roles. Reads the role again, because it can have
 * changed since the session was looked up.
 */
export async function requireMayManage(tx: Tenant, ...roles: MemberRole[]): Promise<void> {
  const own = await memberships(tx)
    .where({ user_id: tx.actor.id })
    .first<{ role: MemberRole } | undefined>('role')
  const beyond = roles.find((role) => !own || own.role === 'member' || !includesRole(own.role, role))
  if (beyond)
    throw new AppError('insufficient_scope', `the operation requires the role ${beyond}`, {
      hint: 'admins manage members and admins; only owners manage owners',
    })
}

/** Throws conflict for the last owner. */
export async function requireOtherOwner(tx: Tenant, member: Member): Promise<void> {
  if (member.role !== 'owner') return
  const other = await memberships(tx)
    .where({ role: 'owner' })
    .whereNot({ user_id: member.id })
    .first<{ user_id: string } | undefined>('user_id')
  if (!other)
    throw conflict('the last owner of the organization can be neither removed nor given another role', {
      hint: 'make another member an owner first',
    })
}

/**
 * Withdraws the links through which a member could keep or regain the removed rights: the member's own resets, resets
 * that the member created for others, and invitations.
 */
export async function withdrawLinks(
  tx: Tenant,
  userId: string,
  { invitations }: { invitations: boolean },
): Promise<void> {
  const { organizationId: organization_id } = tx
  await tx
    .trx('password_resets')
    .where({ organization_id })
    .where((of) => of.where({ user_id: userId }).orWhere({ created_by: userId }))
    .delete()
  if (invitations) await tx.trx('invitations').where({ organization_id, invited_by: userId }).delete()
}

export const memberships = (tx: Tenant) => tx.trx('memberships').where({ organization_id: tx.organizationId })
