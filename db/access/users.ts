import { createHash, createHmac, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { BoundedWork } from './bounded-work.ts'
import type { Plan } from './plans.ts'
import type { MemberRole } from './roles.ts'

/** Users, their passwords and sessions. Read with the system role: the tenant is known only after authentication. */

const SESSION_DAYS = 14
/** OWASP's recommendation for scrypt: N = 2^16, r = 8, p = 2 in 64 MiB; about 150 ms. */
const COST = { N: 2 ** 16, r: 8, p: 2 }
/** A hash that no password matches, at the cost of a real one. */
const DECOY = ['scrypt', COST.N, COST.r, COST.p, 'AAAAAAAAAAAAAAAAAAAAAA==', `${'A'.repeat(43)}=`].join('$')

/** Creates a user and adds it to an organization. @returns the user's id. */
export async function createUser(
  system: Knex,
  values: { email: string; name: string; password: string; organizationId: string; role: MemberRole },
): Promise<string> {
  const id = uuidv7()
  const password_hash = await hashPassword(values.password)
  await system.transaction(async (trx) => {
    await trx('users').insert({ id, email: values.email, name: values.name, password_hash })
    await trx('memberships').insert({
      organization_id: values.organizationId,
      user_id: id,
      role: values.role,
    })
  })
  return id
}

export interface SignedIn {
  /** The cookie's value; only its hash is stored. */
  token: string
  expires_at: Date
}

/**
 * Checks a password and opens a session in the user's first organization.
 * @returns undefined if the email is unknown, the password is wrong, or the user is in no organization.
 */
export async function signIn(system: Knex, email: string, password: string): Promise<SignedIn | undefined> {
  const user = await system('users').whereRaw('lower(email) = lower(?)', [email]).first('id', 'password_hash')
  // An unknown email takes as long as a wrong password, so that the time reveals nothing.
  const right = await verifyPassword(password, user?.password_hash ?? DECOY)
  if (!user || !right) return undefined
  const membership = await system('memberships')
    .where({ user_id: user.id })
    .orderBy('created_at')
    .first('organization_id')
  if (!membership) return undefined
  return openSession(system, user.id, membership.organization_id)
}

/** Opens a session of a user who is authenticated. */
export async function openSession(system: Knex, userId: string, organizationId: string): Promise<SignedIn> {
  const token = randomBytes(32).toString('base64url')
  const expires_at = new Date(Date.now() + SESSION_DAYS * 86_400_000)
  await system('sessions').insert({
    token_hash: hashToken(token),
    id: uuidv7(),
    organization_id: organizationId,
    user_id: userId,
    expires_at,
  })
  return { token, expires_at }
}

export interface Session {
  id: string
  csrf_token: string
  expires_at: Date
  user_id: string
  user_name: string
  email: string
  role: MemberRole
  organization_id: string
  organization_name: string
  plan: Plan
  settings: { currency?: string; timezone?: string }
}

/** The session of a cookie, with its user, role and organization; undefined if there is none or it has expired. */
export async function findSession(system: Knex, token: string): Promise<Session | undefined> {
  const { rows } = await system.raw<{ rows: Omit<Session, 'csrf_token'>[] }>(
    `select s.id, s.expires_at, s.user_id, u.name as user_name, u.email, m.role,
       s.organization_id, o.name as organization_name, o.plan, o.settings
     from sessions s
       join users u on u.id = s.user_id
       join memberships m on m.organization_id = s.organization_id and m.user_id = s.user_id
       join organizations o on o.id = s.organization_id
     where s.token_hash = ? and s.expires_at > now()`,
    [hashToken(token)],
  )
  return rows[0] && { ...rows[0], csrf_token: csrfToken(token) }
}

export async function signOut(system: Knex, organizationId: string, sessionId: string): Promise<void> {
  await system('sessions').where({ organization_id: organizationId, id: sessionId }).delete()
}

/** @returns `scrypt$N$r$p$salt$hash`, salt and hash in base64. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16)
  const hash = await derive(password, salt, 32, COST)
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64'), hash.toString('base64')].join('$')
}

export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const [, N, r, p, salt = '', hash = ''] = stored.split('$')
  const expected = Buffer.from(hash, 'base64')
  const given = await derive(password, Buffer.from(salt, 'base64'), expected.length, {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  })
  return timingSafeEqual(given, expected)
}

/**
 * Of this process, as are the memory and the four threads of libuv that the work occupies: half of the threads remain
 * for files and DNS. A full queue is done within about a second.
 */
const hashing = new BoundedWork({ concurrent: 2, waiting: 10 })

/** Throws unavailable while too many passwords are being hashed. */
function derive(password: string, salt: Buffer, length: number, cost: ScryptOptions): Promise<Buffer> {
  const options = { ...cost, maxmem: 256 * 1024 * 1024 }
  return hashing.run(
    () =>
      new Promise((resolve, reject) =>
        scrypt(password.normalize('NFKC'), salt, length, options, (error, derived) =>
          error ? reject(error) : resolve(derived),
        ),
      ),
  )
}

/**
 * Derived from the cookie's value instead of stored: the database, which has only the hash of that value, does not
 * reveal it, and it does not reveal the cookie.
 */
const csrfToken = (token: string) => createHmac('sha256', token).update('csrf').digest('base64url')

const hashToken = (token: string) => createHash('sha256').update(token).digest()
