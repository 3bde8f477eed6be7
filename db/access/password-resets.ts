import type { Knex } from 'knex'
import { type Actor, SYSTEM } from '../model/actor.ts'
import { conflict, notFound } from '../model/errors.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { hashPassword } from '../process/passwords.ts'
import type { SecretsKey } from '../process/seal.ts'
import { insertAccountMail, NO_ORGANIZATION } from './account-mails.ts'
import { recordChange } from './audit-log.ts'
import { endGrantsOf } from './grants.ts'
import { newLinkToken, usableLink } from './link-tokens.ts'
import { lockMember, requireMayManage } from './members.ts'

/**
 * Password resets. If the service sends mail, only the user gets the link, on the user's own or an admin's request.
 * Otherwise an admin creates the link for a member, who must belong to this organization only: its admins could else
 * enter the other organizations of the user.
 */

export const RESET_HOURS = 24

/**
 * Creates the reset link of a member; an earlier one no longer works. With `mailKey` (SECRETS_KEY) it is mailed to the
 * member. Throws not_found, insufficient_scope, and without a mail conflict.
 */
export async function createPasswordReset(
  tx: Tenant,
  userId: string,
  { isMemberElsewhere, mailKey }: { isMemberElsewhere: boolean; mailKey?: SecretsKey | undefined },
): Promise<{ email: string; token: string; expires_at: Date }> {
  const member = await lockMember(tx, userId)
  await requireMayManage(tx, member.role)
  if (isMemberElsewhere && !mailKey)
    throw conflict(
      'the user also belongs to other organizations, so the admins of one organization cannot reset the password',
      {
        hint: 'the operator can: `npm run set-password -- <email>`',
      },
    )
  const made = await insertReset(tx, { id: userId, email: member.email }, tx.actor.id, mailKey)
  await recordChange(tx, 'password_reset.created', { id: userId, name: member.name })
  if (mailKey) tx.wake('agx_mails')
  return { email: member.email, ...made }
}

/** Stores the reset. With `mailKey`, also queues the mail with its link. */
async function insertReset(
  { trx, organizationId }: Pick<Tenant, 'trx' | 'organizationId'>,
  { id, email }: { id: string; email: string },
  createdBy: string | null,
  mailKey: SecretsKey | undefined,
): Promise<{ token: string; expires_at: Date }> {
  const { token, hash } = newLinkToken()
  const [row] = await trx('password_resets')
    .insert({
      organization_id: organizationId,
      user_id: id,
      token_hash: hash,
      created_by: createdBy,
      mailed: mailKey !== undefined,
      expires_at: trx.raw('now() + make_interval(hours => ?)', [RESET_HOURS]),
    })
    .onConflict(['organization_id', 'user_id'])
    .merge()
    .returning<{ expires_at: Date }[]>('expires_at')
  const { expires_at } = row!
  const details = { expires_at: expires_at.toISOString() }
  if (mailKey)
    await insertAccountMail({ trx, organizationId }, mailKey, {
      kind: 'password_reset' as const,
      address: email,
      token,
      details,
    })
  return { token, expires_at }
}

/**
 * Whether a member of the organization also belongs to another one. False for a user who is not a member, so that it
 * reveals nothing about users of other organizations.
 */
export async function isMemberElsewhere(
  system: Knex,
  userId: string,
  organizationId: string,
): Promise<boolean> {
  const other = await system('memberships')
    .where({ user_id: userId })
    .whereNot({ organization_id: organizationId })
    .whereExists(system('memberships as own').where({ user_id: userId, organization_id: organizationId }))
    .first('user_id')
  return other !== undefined
}

/**
 * Records in the audit log of each organization of the user that the user requested a reset. With `mailKey`
 * (SECRETS_KEY), the link is mailed to the user. Does nothing for an unknown address.
 * @param options.replaces whether an earlier link is replaced; otherwise nothing is mailed while that one works.
 */
export async function requestPasswordReset(
  system: Knex,
  email: string,
  { mailKey, replaces }: { mailKey: SecretsKey | undefined; replaces: boolean },
): Promise<void> {
  await system.transaction(async (trx) => {
    const memberships = await trx('memberships as m')
      .join('users as u', 'u.id', 'm.user_id')
      .whereRaw('lower(u.email) = lower(?)', [email])
      .select('m.organization_id', 'u.id', 'u.name', 'u.email')
    for (const { organization_id, id, name } of memberships) {
      const tx = { trx, organizationId: organization_id, actor: SYSTEM }
      await recordChange(tx, 'password_reset.requested', { id, name })
    }
    const [user] = memberships
    if (!user || !mailKey || (!replaces && (await hasOwnLink(trx, user.id)))) return
    await insertReset({ trx, organizationId: NO_ORGANIZATION }, user, null, mailKey)
  })
}

/** Whether a link that the user asked for works now. */
const hasOwnLink = async (trx: Knex, userId: string): Promise<boolean> =>
  (await trx('password_resets')
    .where({ organization_id: NO_ORGANIZATION, user_id: userId })
    .whereRaw('expires_at > now()')
    .first('user_id')) !== undefined

/** Throws not_found unless the token works now. */
export async function requireResetToken(system: Knex, token: string): Promise<void> {
  if (!(await usableLink(system, 'password_reset', token).first('user_id'))) throw unusable()
}

/** Sets a new password and ends all sessions of the user, in all organizations. Throws not_found. */
export async function resetPassword(system: Knex, token: string, password: string): Promise<void> {
  const password_hash = await hashPassword(password)
  await system.transaction(async (trx) => {
    // The deletion makes the token single-use: the second of two concurrent requests finds no row.
    const [reset] = await usableLink(trx, 'password_reset', token)
      .delete()
      .returning(['organization_id', 'user_id', 'mailed'])
    if (!reset) throw unusable()
    const { organization_id, user_id, mailed } = reset
    // Serialises with the acceptance of invitations, which adds a membership: the acceptance waits, or its membership
    // is visible here.
    const user = await trx('users').where({ id: user_id }).forUpdate().first('name')
    const organizations: string[] = await trx('memberships').where({ user_id }).pluck('organization_id')
    const isOfThisAlone = organizations.length === 1 && organizations[0] === organization_id
    if (!mailed && !isOfThisAlone) throw unusable()
    const changed = { id: user_id, name: user.name, password_hash }
    await changePassword(trx, changed, { type: 'user', id: user_id }, organizations)
  })
}

/**
 * Sets the password of any user. For the operator, if the user is the only owner or belongs to several organizations.
 * Throws not_found.
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

/**
 * Sets the password, ends all sessions of the user and the access of the user's assistants, and deletes the links that
 * could set another password.
 */
async function changePassword(
  trx: Knex,
  user: { id: string; name: string; password_hash: string },
  actor: Actor,
  organizations: string[],
): Promise<void> {
  const { id, name, password_hash } = user
  await trx('users').where({ id }).update({ password_hash })
  await trx('sessions').where({ user_id: id }).delete()
  await endGrantsOf(trx, id, actor, { reason: 'password_changed' })
  await trx('password_resets').where({ user_id: id }).delete()
  for (const organizationId of organizations)
    await recordChange({ trx, organizationId, actor }, 'member.password_changed', { id, name })
}

const unusable = () =>
  notFound('password reset', 'it has expired, or was used or replaced: ask for a new one')
