import type { MemberRole } from '../../db/access/roles.ts'
import { createUser } from '../../db/access/users.ts'
import type { Database } from '../../db/postgres/connect.ts'
import type { Answer, TestApi } from './api.ts'

export type App = (method: string, path: string, body?: unknown) => Promise<Answer>

/** Signs in a new member of the API's organization. @returns a function for requests to /app in that session. */
export async function signIn(db: Database, api: TestApi, role: MemberRole = 'owner'): Promise<App> {
  const email = `${role}.${api.organizationId}@example.com`
  const password = 'correct horse battery staple'
  await createUser(db.system, { email, password, name: role, organizationId: api.organizationId, role })
  const session = await api.request('POST', '/app/session', { key: null, body: { email, password } })
  const headers = {
    Cookie: session.headers.get('set-cookie')!.split(';')[0]!,
    'X-CSRF-Token': session.body.csrf_token,
  }
  return (method, path, body) =>
    api.request(method, `/app${path}`, { key: null, headers, ...(body === undefined ? {} : { body }) })
}
