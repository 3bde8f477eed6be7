import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { MemberRole } from '../model/access/roles.ts'
import { AppError } from '../model/errors.ts'
import { checkPassword, hashPassword } from '../process/passwords.ts'
import { type Client, openSession, type SignedIn } from './sessions.ts'

/** Users and their passwords, read with the system role: the tenant is known only after authentication. */

/** Creates a user and adds it to an organization, in the transaction of the caller. @returns the user's id. */
export async function createUser(
  trx: Knex,
  values: { email: string; name: string; password: string; organizationId: string; role: MemberRole },
): Promise<string> {
  const id = uuidv7()
  const password_hash = await hashPassword(values.password)
  await trx('users').insert({ id, email: values.email, name: values.name, password_hash })
  await trx('memberships').insert({ organization_id: values.organizationId, user_id: id, role: values.role })
  return id
}

/** A user with the hash of the password. */
export interface User {
  id: string
  password_hash: string
}

/** The user with an email address, compared case-insensitively. */
export const findUser = (system: Knex, email: string): Promise<User | undefined> =>
  system('users').whereRaw('lower(email) = lower(?)', [email]).first('id', 'password_hash')

/**
 * Checks a password, and replaces a hash of an older format.
 * @returns undefined if the email is unknown or the password is wrong; both take the same time.
 */
export async function authenticate(system: Knex, email: string, password: string): Promise<User | undefined> {
  const user = await findUser(system, email)
  const { right, replacement } = await checkPassword(password, user?.password_hash)
  if (!user || !right) return undefined
  if (!replacement) return user
  // No-op if the password has changed since.
  await system('users').where(user).update({ password_hash: replacement })
  return { ...user, password_hash: replacement }
}

/**
 * Locks a user against a change of the password until the transaction ends. Throws unauthorized if the password has
 * changed since it was checked: a reset ends all sessions, and no session with the old password may begin after it.
 */
export async function requireSamePassword(trx: Knex, user: User): Promise<void> {
  const same = await trx('users')
    .where({ id: user.id, password_hash: user.password_hash })
    .forShare()
    .first('id')
  if (!same) throw new AppError('unauthorized', 'the password has changed: sign in again')
}

/**
 * Checks a password and opens a session in the user's first organization. Ends the browser's earlier session, whose
 * token is `replaced`.
 * @returns undefined if the email is unknown, the password is wrong, or the user belongs to no organization.
 */
export async function signIn(
  system: Knex,
  { email, password }: { email: string; password: string },
  client: Client,
  replaced?: string,
): Promise<SignedIn | undefined> {
  const user = await authenticate(system, email, password)
  if (!user) return undefined
  const membership = await system('memberships')
    .where({ user_id: user.id })
    .orderBy('created_at')
    .first('organization_id')
  if (!membership) return undefined
  return system.transaction(async (trx) => {
    await requireSamePassword(trx, user)
    return openSession(trx, user.id, membership.organization_id, client, replaced)
  })
}
