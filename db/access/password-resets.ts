import type { Knex } from 'knex'
import { conflict, notFound } from '../errors.ts'
import { type Actor, SYSTEM, type Tenant } from '../postgres/tenancy.ts'
import { recordChange } from './audit-log.ts'
import { hashLinkToken, newLinkToken } from './link-tokens.ts'
import { lockMember, requireMayManage } from './members.ts'
import { hashPassword } from './passwords.ts'

/**
 * Password resets. An admin makes the link for a member, since the service sends no mail. A link is only for a user of
 * this organization alone: else its admins could enter the other organizations of the user.
 */

export const RESET_HOURS = 24

/** Makes the link of a member; an earlier one no longer works. Throws not_found, insufficient_scope, conflict. */
export async function createPasswordReset(
  tx: Tenant,
  userId: string,
  { isMemberElsewhere }: { isMemberElsewhere: boolean },
): Promise<{ token: string; expires_at: Date }> {
  const member = await lockMember(tx, userId)
  await requireMayManage(tx, member.role)
  if (isMemberElsewhere)
    throw conflict('the user belongs to other organizations too: no single one can reset the password', {
      hint: 'the operator can: `npm run set-password -- <email>`',
    })
  const { token, hash } = newLinkToken()
  const [row] = await tx
    .trx('password_resets')
    .insert({
      ...{ organization_id: tx.organizationId, user_id: userId },
      ...{ token_hash: hash, created_by: tx.actor.id },
      expires_at: tx.trx.raw('now() + make_interval(hours => ?)', [RESET_HOURS]),
    })
    .onConflict(['organization_id', 'user_id'])
    .merge()
    .returning<{ expires_at: Date }[]>('expires_at')
  await recordChange(tx, 'password_reset.created', { id: userId, name: member.name })
  return { token, expires_at: row!.expires_at }
}

/** Whether a user belongs to another organization too. For a user without one it is false. */
export async function isMemberElsewhere(
  system: Knex,
  userId: string,
  organizationId: string,
): Promise<boolean> {
  const other = await system('memberships')
    .where({ user_id: userId })
    .whereNot({ organization_id: organizationId })
    .first('user_id')
  return other !== undefined
}

/**
 * Records that a user who cannot sign in asks for a reset, in the audit log of each organization of the user. An unknown
 * address has no organization. This is where a mail with a link is to be sent.
 */
export async function requestPasswordReset(system: Knex, email: string): Promise<void> {
  await system.transaction(async (trx) => {
    const memberships = await trx('memberships as m')
      .join('users as u', 'u.id', 'm.user_id')
      .whereRaw('lower(u.email) = lower(?)', [email])
      .select('m.organization_id', 'u.id', 'u.name')
    for (const { organization_id, id, name } of memberships) {
      const tx = { trx, organizationId: organization_id, actor: SYSTEM }
      await recordChange(tx, 'password_reset.requested', { id, name })
    }
  })
}

/** Throws not_found unless the token works now. */
export async function requireResetToken(system: Knex, token: string): Promise<void> {
  if (!(await withToken(system, token).first('user_id'))) throw unusable()
}

/** Sets a new password and ends all sessions of the user, in all organizations. Throws not_found. */
export async function resetPassword(system: Knex, token: string, password: string): Promise<void> {
  const password_hash = await hashPassword(password)
  await system.transaction(async (trx) => {
    // The deletion makes the token usable once: of two concurrent requests the second finds no row.
    const [reset] = await withToken(trx, token).delete().returning(['organization_id', 'user_id'])
    if (!reset) throw unusable()
    const { organization_id, user_id } = reset
    // An accepted invitation adds a membership: it waits for this lock, or is seen.
    const user = await trx('users').where({ id: user_id }).forUpdate().first('name')
    const organizations = await trx('memberships').where({ user_id }).select('organization_id')
    if (organizations.length !== 1 || organizations[0].organization_id !== organization_id) throw unusable()
    const changed = { id: user_id, name: user.name, password_hash }
    await changePassword(trx, changed, { type: 'user', id: user_id }, [organization_id])
  })
}

/**
 * Sets the password of any user, for the operator: of an only owner, or of a user of several organizations. Throws
 * not_found.
 */
export async function setPassword(system: Knex, email: string, password: string): Promise<void> {
  const password_hash = await hashPassword(password)
  await system.transaction(async (trx) => {
    const user = await trx('users')
      .whereRaw('lower(email) = lower(?)', [email])
      .forUpdate()
      .first<{ id: string; name: string } | undefined>('id', 'name')
    if (!user) throw notFound('user')
    const organizations = await trx('memberships').where({ user_id: user.id }).pluck('organization_id')
    await changePassword(trx, { ...user, password_hash }, SYSTEM, organizations)
  })
}

/** Also ends all sessions of the user, and the links that could set another password. */
async function changePassword(
  trx: Knex,
  user: { id: string; name: string; password_hash: string },
  actor: Actor,
  organizations: string[],
): Promise<void> {
  const { id, name, password_hash } = user
  await trx('users').where({ id }).update({ password_hash })
  await trx('sessions').where({ user_id: id }).delete()
  await trx('password_resets').where({ user_id: id }).delete()
  for (const organizationId of organizations)
    await recordChange({ trx, organizationId, actor }, 'member.password_changed', { id, name })
}

const withToken = (system: Knex, token: string) =>
  system('password_resets')
    .where({ token_hash: hashLinkToken(token) })
    .whereRaw('expires_at > now()')

const unusable = () =>
  notFound('password reset', 'it has expired, or was used or replaced: ask for a new one')
