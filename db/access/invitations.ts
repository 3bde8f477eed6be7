import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { MemberRole } from '../model/access/roles.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sql-state.ts'
import type { Tenant } from '../postgres/tenancy.ts'
import { hashPassword } from '../process/passwords.ts'
import type { SecretsKey } from '../process/seal.ts'
import { insertAccountMail } from './account-mails.ts'
import { recordChange } from './audit-log.ts'
import { newLinkToken, usableLink } from './link-tokens.ts'
import { lockMembers, memberWithEmail, requireMayManage } from './members.ts'
import { type Client, openSession, type SignedIn } from './sessions.ts'
import { authenticate, findUser, requireSamePassword, type User } from './users.ts'

/**
 * Invitations to an organization. The single-use token of the link is mailed to the invited address. If the service
 * sends no mail, it is shown once to the inviting admin. It gives access to the organization, not to an account: the
 * owner of an account must also know its password.
 */

export const INVITATION_DAYS = 7
/** Maximum number of open invitations of an organization. */
export const MAX_INVITATIONS = 200

/** The last mail with the link of an invitation. It is queued while it has neither `sent_at` nor `problem`. */
export interface InvitationMail {
  sent_at: Date | null
  /** The error of the last attempt. */
  problem: string | null
}

export interface Invitation {
  id: string
  email: string
  role: MemberRole
  invited_by: string | null
  created_at: Date
  expires_at: Date
  /** Null if the admin got the link. */
  mail: InvitationMail | null
}

const COLUMNS = ['id', 'email', 'role', 'invited_by', 'created_at', 'expires_at']

/**
 * Invites an email address, and replaces its earlier invitation. With `mailKey` (SECRETS_KEY) the link is mailed.
 * Throws conflict for a member and above MAX_INVITATIONS; insufficient_scope for a role beyond the actor's.
 */
export async function createInvitation(
  tx: Tenant,
  { email, role }: { email: string; role: MemberRole },
  mailKey?: SecretsKey,
): Promise<{ invitation: Invitation; token: string }> {
  await lockMembers(tx)
  await requireMayManage(tx, role)
  if (await memberWithEmail(tx, email)) throw conflict(`${email} is already a member`, { param: 'email' })
  const replaced = await invitations(tx)
    .whereRaw('lower(email) = lower(?)', [email])
    .delete()
    .returning<Pick<Invitation, 'role'>[]>(['role'])
  // Else an admin could withdraw the invitation of an owner in this way.
  await requireMayManage(tx, ...replaced.map((earlier) => earlier.role))
  const [open] = await invitations(tx).count<{ count: string }[]>()
  if (Number(open?.count) >= MAX_INVITATIONS)
    throw conflict(`the organization has ${MAX_INVITATIONS} open invitations`, { hint: 'withdraw some' })
  const { token, hash } = newLinkToken()
  const [invitation] = await tx
    .trx('invitations')
    .insert({
      organization_id: tx.organizationId,
      id: uuidv7(),
      email,
      role,
      token_hash: hash,
      invited_by: tx.actor.id,
      expires_at: tx.trx.raw('now() + make_interval(days => ?)', [INVITATION_DAYS]),
    })
    .returning<Invitation[]>(COLUMNS)
  await recordChange(tx, 'invitation.created', { id: invitation!.id, name: email, details: { role } })
  if (mailKey) await mailInvitation(tx, mailKey, invitation!, token)
  const mail = mailKey ? { sent_at: null, problem: null } : null
  return { invitation: { ...invitation!, mail }, token }
}

async function mailInvitation(tx: Tenant, key: SecretsKey, invitation: Invitation, token: string) {
  const { id, email, expires_at } = invitation
  const names = await tx
    .trx('organizations as o')
    .leftJoin('users as u', 'u.id', tx.trx.raw('?::uuid', [tx.actor.id]))
    .where('o.id', tx.organizationId)
    .first('o.name as organization_name', 'u.name as invited_by')
  const details = { ...names, expires_at: expires_at.toISOString() }
  await insertAccountMail(tx, key, { kind: 'invitation', address: email, token, invitation_id: id, details })
  tx.wake('agx_mails')
}

/** The open and recently expired invitations, newest first. */
export async function listInvitations(tx: Tenant, page: IdPage): Promise<Page<Invitation>> {
  const lastMail = tx.trx.raw(
    `(select jsonb_build_object('sent_at', m.sent_at, 'problem', m.problem) from account_mails m
      where m.organization_id = ? and m.invitation_id = invitations.id order by m.id desc limit 1) as mail`,
    [tx.organizationId],
  )
  const rows = invitations(tx).select(COLUMNS).select(lastMail)
  const found = await pageById<Invitation>(tx, rows, page, { of: 'invitations' })
  // Times are text in JSON.
  for (const { mail } of found.data) if (mail?.sent_at) mail.sent_at = new Date(mail.sent_at)
  return found
}

/** Withdraws an invitation: its link no longer works. Throws not_found, insufficient_scope. */
export async function withdrawInvitation(tx: Tenant, id: string): Promise<void> {
  const [invitation] = await invitations(tx).where({ id }).delete().returning<Invitation[]>(COLUMNS)
  if (!invitation) throw notFound('invitation')
  await requireMayManage(tx, invitation.role)
  await recordChange(tx, 'invitation.withdrawn', { id, name: invitation.email })
}

/** The invited address of a token. Throws not_found. */
export async function invitedEmail(system: Knex, token: string): Promise<string> {
  const found = await usableLink(system, 'invitation', token).first('email')
  if (!found) throw unusable()
  return found.email
}

/**
 * Accepts an invitation, and opens a session in its organization. Creates an account with `name` and `password` if the
 * address has none; otherwise `password` must be that of the account. Throws not_found, unauthorized.
 */
export async function acceptInvitation(
  system: Knex,
  token: string,
  { name, password }: { name?: string | undefined; password: string },
  client: Client,
  replaced?: string,
): Promise<SignedIn> {
  const email = await invitedEmail(system, token)
  const isKnown = (await findUser(system, email)) !== undefined
  // Without a name there is no new account, and the answer is the same as to a wrong password: a link that was not
  // mailed must not tell whether the address has an account.
  const isNew = !isKnown && name !== undefined
  const user = isNew ? await newUser(password) : await authenticate(system, email, password)
  if (!user)
    throw new AppError('unauthorized', 'wrong password', {
      hint: 'send the password of the account of the invited address; if it has none, a name and a new password',
    })

  const accept = async (trx: Knex) => {
    // The deletion makes the token single-use: the second of two concurrent requests finds no row.
    const [invitation] = await usableLink(trx, 'invitation', token)
      .delete()
      .returning(['organization_id', ...COLUMNS])
    if (!invitation) throw unusable()
    const { organization_id, id, role } = invitation
    if (isKnown) await requireSamePassword(trx, user)
    else await trx('users').insert({ ...user, email, name })
    await trx('memberships').insert({ organization_id, user_id: user.id, role })
    const tx = { trx, organizationId: organization_id, actor: { type: 'user' as const, id: user.id } }
    await recordChange(tx, 'invitation.accepted', { id, name: email, details: { role } })
    return openSession(trx, user.id, organization_id, client, replaced)
  }
  try {
    return await system.transaction(accept)
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    throw conflict('an account or membership of this address was created at the same time: try again')
  }
}

const newUser = async (password: string): Promise<User> => ({
  id: uuidv7(),
  password_hash: await hashPassword(password),
})

const unusable = () =>
  notFound('invitation', 'it has expired, or was accepted, withdrawn or replaced: ask for a new one')

const invitations = (tx: Tenant) => tx.trx('invitations').where({ organization_id: tx.organizationId })
