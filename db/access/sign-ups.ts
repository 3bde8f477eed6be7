import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import type { SignUpRule } from '../model/access/sign-up-rule.ts'
import { AppError, conflict, notFound } from '../model/errors.ts'
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sql-state.ts'
import { checkPassword, hashPassword } from '../process/passwords.ts'
import type { SecretsKey } from '../process/seal.ts'
import { insertAccountMail, NO_ORGANIZATION } from './account-mails.ts'
import { recordChange } from './audit-log.ts'
import { lockFirstOrganization } from './bootstrap.ts'
import { newLinkToken, usableLink } from './link-tokens.ts'
import type { Plan } from './plans.ts'
import { type Client, openSession, type SignedIn } from './sessions.ts'
import { authenticate, findUser, requireSamePassword, type User } from './users.ts'

/**
 * Sign-ups: a person creates an organization and becomes its owner. If the service sends mail, a link confirms the
 * address first, and the password is entered again with it: whoever signs up another person's address does not get the
 * link, and whoever gets the link does not know the password. An address with an account needs the password of the
 * account. Neither responses nor response times reveal whether an address has an account.
 */

export const SIGN_UP_HOURS = 24

export interface SignUp {
  email: string
  name: string
  organization_name: string
  password: string
}

/** Throws not_found unless the rule currently allows sign-ups. */
export async function requireOpenSignUp(system: Knex, rule: SignUpRule): Promise<void> {
  if (!(await isSignUpOpen(system, rule))) throw closed()
}

export async function isSignUpOpen(system: Knex, rule: SignUpRule): Promise<boolean> {
  if (rule === 'first') return (await system('organizations').first('id')) === undefined
  return rule === 'open'
}

const closed = () =>
  new AppError('not_found', 'sign-up is closed', {
    hint: 'ask an admin of your organization for an invitation; operators set SIGN_UP',
  })

/** Queues a mail with a link that confirms the address, or a notice to the owner of an existing account. */
export async function requestSignUp(system: Knex, key: SecretsKey, signUp: SignUp): Promise<void> {
  const { email, name, organization_name } = signUp
  const { user, password_hash } = await proof(system, signUp)
  const { token, hash } = newLinkToken()
  await system.transaction(async (trx) => {
    const tx = { trx, organizationId: NO_ORGANIZATION }
    if (user === 'wrong password') {
      await insertAccountMail(tx, key, { kind: 'sign_up_known', address: email })
      return
    }
    const [{ expires_at }] = await trx('sign_ups')
      .insert({
        token_hash: hash,
        email,
        name,
        organization_name,
        password_hash,
        expires_at: trx.raw('now() + make_interval(hours => ?)', [SIGN_UP_HOURS]),
      })
      .returning('expires_at')
    const details = { expires_at: expires_at.toISOString() }
    await insertAccountMail(tx, key, { kind: 'sign_up', address: email, token, details })
  })
}

/** Creates the organization at once, without a confirmed address. Does nothing for a wrong password of an account. */
export async function signUpAtOnce(system: Knex, rule: SignUpRule, signUp: SignUp): Promise<void> {
  const { user, password_hash } = await proof(system, signUp)
  if (user === 'wrong password') return
  try {
    await system.transaction((trx) => createOwned(trx, rule, { ...signUp, user, password_hash }))
  } catch (error) {
    // A concurrent sign-up of this address was faster; the response does not reveal it.
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
  }
}

/** The address of an unconfirmed sign-up. Throws not_found. */
export async function signUpEmail(system: Knex, token: string): Promise<string> {
  const found = await usableLink(system, 'sign_up', token).first('email')
  if (!found) throw unusable()
  return found.email
}

/** Confirms a sign-up with the password given for it, and opens a session. Throws not_found, unauthorized. */
export async function confirmSignUp(
  system: Knex,
  token: string,
  { rule, password }: { rule: SignUpRule; password: string },
  client: Client,
  replaced?: string,
): Promise<SignedIn> {
  const pending = await usableLink(system, 'sign_up', token).first()
  if (!pending) throw unusable()
  const { email, password_hash } = pending
  const known = await findUser(system, email)
  const user = known && (await authenticate(system, email, password))
  const right = known ? user !== undefined : (await checkPassword(password, password_hash)).right
  if (!right)
    throw new AppError('unauthorized', 'wrong password', {
      hint: 'send the password of the sign-up, or that of your account if you have one',
    })
  try {
    return await system.transaction(async (trx) => {
      // The deletion makes the token single-use: the second of two concurrent requests finds no row.
      if ((await usableLink(trx, 'sign_up', token).delete()) === 0) throw unusable()
      const made = await createOwned(trx, rule, { ...pending, user })
      return openSession(trx, made.userId, made.organizationId, client, replaced)
    })
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error
    throw conflict('an account of this address was created at the same time: try again')
  }
}

/**
 * The account that the password authenticates, or the hash for a new account. Both branches hash once, so that they
 * take the same time.
 */
async function proof(
  system: Knex,
  { email, password }: SignUp,
): Promise<{ user: User | 'wrong password' | undefined; password_hash: string | null }> {
  if (!(await findUser(system, email)))
    return { user: undefined, password_hash: await hashPassword(password) }
  return { user: (await authenticate(system, email, password)) ?? 'wrong password', password_hash: null }
}

/**
 * Creates an organization with its owner: `user`, or a new account with `password_hash`. Throws not_found,
 * unauthorized.
 */
async function createOwned(
  trx: Knex,
  rule: SignUpRule,
  values: Omit<SignUp, 'password'> & { user: User | undefined; password_hash: string | null },
): Promise<{ userId: string; organizationId: string }> {
  const { email, name, organization_name, user, password_hash } = values
  if (user) await requireSamePassword(trx, user)
  const isFirst = rule === 'first' && (await lockFirstOrganization(trx))
  if (rule !== 'open' && !isFirst) throw closed()
  const organizationId = uuidv7()
  const userId = user?.id ?? uuidv7()
  // The first organization belongs to the operator, as does the one that `npm start` creates.
  const plan: Plan = isFirst ? 'enterprise' : 'free'
  await trx('organizations').insert({
    id: organizationId,
    name: organization_name,
    plan,
    is_operators: isFirst,
    signed_up: !isFirst,
  })
  if (!user) await trx('users').insert({ id: userId, email, name, password_hash })
  await trx('memberships').insert({ organization_id: organizationId, user_id: userId, role: 'owner' })
  const tx = { trx, organizationId, actor: { type: 'user' as const, id: userId } }
  await recordChange(tx, 'organization.created', {
    id: organizationId,
    name: organization_name,
    details: { plan },
  })
  return { userId, organizationId }
}

const unusable = () => notFound('sign-up', 'its link has expired or was used: sign up again')
