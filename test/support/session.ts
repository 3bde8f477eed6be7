import { sessionCookie } from '../../api/settings/cookie.ts'
import type { MemberRole } from '../../db/access/roles.ts'
import { findSession, openSession } from '../../db/access/users.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Answer, TestApi } from './api.ts'
import { createMember } from './database.ts'

export type App = (method: string, path: string, body?: unknown) => Promise<Answer>

/** Signs in a new member of the API's organization. @returns a function for requests to /app in that session. */
export async function signIn(db: Database, api: TestApi, role: MemberRole = 'owner'): Promise<App> {
  const headers = await sessionHeaders(db, api, role)
  return (method, path, body) =>
    api.request(method, `/app${path}`, { key: null, headers, ...(body === undefined ? {} : { body }) })
}

/** The headers of a session of a new member. It has no password: hashing and checking one takes half a second of CPU. */
export async function sessionHeaders(db: Database, api: TestApi, role: MemberRole) {
  const member = await createMember(db, api.organizationId, role, role)
  const { token, expires_at } = await openSession(db.system, member, api.organizationId)
  const { csrf_token } = (await findSession(db.system, token))!
  // The name depends on PUBLIC_URL; the API reads the one that applies.
  const pairs = [false, true].map((secure) => sessionCookie(token, expires_at, secure).split(';')[0]!)
  return { Cookie: pairs.join('; '), 'X-CSRF-Token': csrf_token }
}
