import { createHash, createHmac, randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { v7 as uuidv7 } from 'uuid'
import { type IdPage, pageById } from '../lists/id-list.ts'
import type { MemberRole } from '../model/access/roles.ts'
import { notFound } from '../model/errors.ts'
import type { Page } from '../model/lists/page.ts'
import { type Audited, recordChange } from './audit-log.ts'
import type { Subscription } from './plans.ts'

/**
 * Sessions. A session belongs to a user, and acts in one organization at a time. Sessions are read with the system
 * role, because the tenant is known only after authentication and a user's sessions may be in several organizations.
 */

const SESSION_DAYS = 14

export interface SignedIn {
  /** The cookie's value; only its hash is stored. */
  token: string
  expires_at: Date
}

/** The browser data of a session. */
export interface Client {
  ip: string | null
  userAgent: string | null
}

const UNKNOWN: Client = { ip: null, userAgent: null }

/** Opens a session of an authenticated user, and ends the session with the token `replaced`. */
export async function openSession(
  system: Knex,
  userId: string,
  organizationId: string,
  client = UNKNOWN,
  replaced?: string,
): Promise<SignedIn> {
  if (replaced !== undefined)
    await system('sessions')
      .where({ token_hash: hashToken(replaced) })
      .delete()
  const token = newToken()
  const id = uuidv7()
  const expires_at = new Date(Date.now() + SESSION_DAYS * 86_400_000)
  await system('sessions').insert({
    token_hash: hashToken(token),
    id,
    organization_id: organizationId,
    user_id: userId,
    ip: client.ip,
    user_agent: client.userAgent?.slice(0, 300) ?? null,
    expires_at,
  })
  const tx = ownChange(system, organizationId, userId)
  await recordChange(tx, 'session.created', {
    id,
    name: client.ip ?? 'unknown address',
    details: { user_agent: client.userAgent },
  })
  return { token, expires_at }
}

export interface Session extends Subscription {
  id: string
  csrf_token: string
  expires_at: Date
  user_id: string
  user_name: string
  email: string
  role: MemberRole
  organization_id: string
  organization_name: string
  storage_full: boolean
  settings: { currency?: string; timezone?: string }
}

/** The session of a cookie, with its user, role and organization; undefined if it is unknown or has expired. */
export async function findSession(system: Knex, token: string): Promise<Session | undefined> {
  const { rows } = await system.raw<{ rows: Omit<Session, 'csrf_token'>[] }>(
    `select s.id, s.expires_at, s.user_id, u.name as user_name, u.email, m.role,
       s.organization_id, o.name as organization_name, o.plan, o.settings, o.limits, o.storage_full
     from sessions s
       join users u on u.id = s.user_id
       join memberships m on m.organization_id = s.organization_id and m.user_id = s.user_id
       join organizations o on o.id = s.organization_id
     where s.token_hash = ? and s.expires_at > now()`,
    [hashToken(token)],
  )
  return rows[0] && { ...rows[0], csrf_token: csrfToken(token) }
}

/** A session as its user sees it. */
export interface ListedSession {
  id: string
  organization_id: string
  organization_name: string
  ip: string | null
  user_agent: string | null
  created_at: Date
  expires_at: Date
}

/** The sessions of a user in all organizations, newest first. Throws `invalid_request` for a cursor of another list. */
export function listSessions(system: Knex, userId: string, page: IdPage): Promise<Page<ListedSession>> {
  const rows = system('sessions as s')
    .join('organizations as o', 'o.id', 's.organization_id')
    .join('memberships as m', { 'm.organization_id': 's.organization_id', 'm.user_id': 's.user_id' })
    .where('s.user_id', userId)
    .whereRaw('s.expires_at > now()')
    .select('s.id', 's.organization_id', 's.ip', 's.user_agent', 's.created_at', 's.expires_at')
    .select('o.name as organization_name')
  return pageById({ trx: system }, system.from(rows.as('sessions')).select(), page, { of: 'sessions' })
}

/** Ends a session of a user. Throws not_found. */
export async function endSession(system: Knex, userId: string, sessionId: string): Promise<void> {
  await system.transaction(async (trx) => {
    const [ended] = await trx('sessions')
      .where({ user_id: userId, id: sessionId })
      .delete()
      .returning(['organization_id', 'ip'])
    if (!ended) throw notFound('session')
    const tx = ownChange(trx, ended.organization_id, userId)
    await recordChange(tx, 'session.ended', { id: sessionId, name: ended.ip ?? 'unknown address' })
  })
}

/** An organization of a user, with the user's role in it. */
export interface OwnOrganization {
  id: string
  name: string
  role: MemberRole
}

/** The organizations of a user, in the order in which the user joined them. */
export const organizationsOf = (system: Knex, userId: string): Promise<OwnOrganization[]> =>
  system('memberships as m')
    .join('organizations as o', 'o.id', 'm.organization_id')
    .where('m.user_id', userId)
    .orderBy(['m.created_at', 'o.id'])
    .select('o.id', 'o.name', 'm.role')

/**
 * Moves a session to another organization of its user, under a new token: a page that still shows the previous
 * organization has an old CSRF token, so it cannot write to the new organization. Throws not_found.
 */
export async function switchOrganization(
  system: Knex,
  session: Session,
  organizationId: string,
): Promise<SignedIn> {
  const token = newToken()
  await system.transaction(async (trx) => {
    const { rowCount } = await trx.raw<{ rowCount: number }>(
      `update sessions s set organization_id = m.organization_id, token_hash = ?
       from memberships m
       where s.id = ? and s.user_id = ? and m.user_id = s.user_id and m.organization_id = ?`,
      [hashToken(token), session.id, session.user_id, organizationId],
    )
    if (rowCount === 0) throw notFound('organization', 'GET /app/session lists those of the user')
    const tx = ownChange(trx, organizationId, session.user_id)
    await recordChange(tx, 'session.switched', { id: session.id, name: session.user_name })
  })
  return { token, expires_at: session.expires_at }
}

/** The context of a change that a user makes to the own session, for the audit log. */
const ownChange = (trx: Knex, organizationId: string, userId: string): Audited => ({
  trx,
  organizationId,
  actor: { type: 'user', id: userId },
})

/**
 * The CSRF token is derived from the cookie's value instead of stored. The database has only the hash of that value, so
 * it reveals neither the token nor the cookie.
 */
const csrfToken = (token: string) => createHmac('sha256', token).update('csrf').digest('base64url')

const newToken = () => randomBytes(32).toString('base64url')
const hashToken = (token: string) => createHash('sha256').update(token).digest()
