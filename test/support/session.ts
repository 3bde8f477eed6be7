import { sessionCookie } from '../../api/app/cookie.ts'
import { findSession, openSession } from '../../db/access/sessions.ts'
import type { MemberRole } from '../../db/model/access/roles.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Answer } from './answer.ts'
import type { TestApi } from './api.ts'
import { createMember } from './database.ts'
import { noteSecret } from './made-secrets.ts'

export type App = (method: string, path: string, body?: unknown) => Promise<Answer>

/** Signs in a new member of the API's organization. @returns a function for requests to /app in that session. */
export async function signIn(db: Database, api: TestApi, role: MemberRole = 'owner'): Promise<App> {
  return signInAs(db, api, await createMember(db, api.organizationId, role, role))
}

/** Signs in a member of the API's organization. @returns a function for requests to /app in that session. */
export async function signInAs(db: Database, api: TestApi, userId: string): Promise<App> {
  const headers = await headersOf(db, api, userId)
  return (method, path, body) =>
    api.request(method, `/app${path}`, { key: null, headers, ...(body === undefined ? {} : { body }) })
}

/** The headers of a session of a new member. It has no password: hashing and checking one takes half a second of CPU. */
export const sessionHeaders = async (db: Database, api: TestApi, role: MemberRole) =>
  headersOf(db, api, await createMember(db, api.organizationId, role, role))

/** The headers of a new session of a member of the API's organization. */
export async function headersOf(db: Database, api: TestApi, userId: string) {
  const { token, expires_at } = await openSession(db.system, userId, api.organizationId)
  const { csrf_token } = (await findSession(db.system, token))!
  for (const secret of [token, csrf_token]) noteSecret(secret)
  // The name depends on PUBLIC_URL; the API reads the one that applies.
  const pairs = [false, true].map((secure) => sessionCookie(token, expires_at, secure).split(';')[0]!)
  return { Cookie: pairs.join('; '), 'X-CSRF-Token': csrf_token }
}
