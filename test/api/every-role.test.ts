import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { appRoutes } from '../../api/app/route-table.ts'
import type { AppRoute, Role } from '../../api/http/route.ts'
import { includesRole, MEMBER_ROLES, type MemberRole } from '../../db/model/access/roles.ts'
import { sessionHeaders } from '../support/session.ts'
import { withApi } from '../support/with-api.ts'

/**
 * The promised least role by method and path, independent of the route table: the first matching pattern. A route
 * without one fails the test.
 */
const PROMISED: [RegExp, Role][] = [
  [/^POST \/(?:signup|signup\/\{token\}|session|password-resets|password-resets\/\{token\})$/, 'public'],
  [/^POST \/invitations\/\{token\}\/accept$/, 'public'],
  [/^(?:GET|DELETE) \/(?:session|sessions|sessions\/\{session_id\})$/, 'member'],
  [/^PUT \/session\/organization$/, 'member'],
  [/^GET \/(?:organization|usage|members)$/, 'member'],
  [/^(?:GET|PATCH) \/preferences$/, 'member'],
  [/ \/(?:grants|authorization)\b/, 'member'],
  [/^GET \/(?:webhooks|deliveries)\b/, 'member'],
  [/^PUT \/organization\/plan$/, 'owner'],
  [/ \/organization$/, 'admin'],
  [/ \/(?:members|invitations|audit-log|keys|secrets|mail-suppressions|webhooks|deliveries)\b/, 'admin'],
]

function promisedFor({ method, path }: AppRoute): Role {
  const found = PROMISED.find(([pattern]) => pattern.test(`${method} ${path}`))
  return found?.[1] ?? assert.fail(`${method} ${path}: no role is promised`)
}

const CSRF = 'X-CSRF-Token'

describe('every route of /app', () => {
  const suite = withApi()
  /** No id exists: an operation that is allowed has no effect. */
  const pathOf = ({ path }: AppRoute) =>
    `/app${path.replace(/\{(\w+)\}/g, (_, name) => (name.endsWith('_id') ? randomUUID() : 'none'))}`
  const send = (route: AppRoute, headers: Record<string, string>) =>
    suite.api.request(route.method, pathOf(route), { key: null, headers })

  /** Sessions by role; a route that may end the session gets a separate one. */
  const sessions = new Map<MemberRole, Promise<Record<string, string>>>()
  const sessionFor = (route: AppRoute, role: MemberRole) => {
    if (/^\/sessions?\b/.test(route.path)) return sessionHeaders(suite.db, suite.api, role)
    const made = sessions.get(role) ?? sessionHeaders(suite.db, suite.api, role)
    sessions.set(role, made)
    return made
  }

  it('needs the promised role: without a session, as a member, an admin and an owner', async () => {
    for (const route of appRoutes) {
      const promised = promisedFor(route)
      const what = `${route.method} ${route.path}`
      const { status, body } = await send(route, {})
      assert.equal(status === 401, promised !== 'public', `${what} without a session: ${status}`)
      assert.ok(status < 500, what)
      if (status === 401) assert.equal(body.error.message, 'sign in first', what)
      if (promised === 'public') continue
      for (const role of MEMBER_ROLES) {
        const answer = await send(route, await sessionFor(route, role))
        const allowed = includesRole(role, promised)
        assert.equal(answer.status !== 403, allowed, `${what} as ${role}: ${answer.status}`)
        assert.ok(answer.status < 500 && answer.status !== 401, `${what} as ${role}: ${answer.status}`)
        if (!allowed)
          assert.deepEqual(
            [answer.body.error.type, answer.body.error.message],
            ['insufficient_scope', `the operation requires the role ${promised}`],
          )
      }
    }
    assert.ok(appRoutes.length > 60, String(appRoutes.length))
  })

  it('refuses a write without the CSRF token of its session, and a session beside a key', async () => {
    const other = await sessionHeaders(suite.db, suite.api, 'owner')
    const { [CSRF]: token = '', ...cookie } = await sessionHeaders(suite.db, suite.api, 'owner')
    const forged = ['', 'x', `${token}x`, token.slice(0, -1), token.toLowerCase(), other[CSRF]!]
    let writes = 0
    for (const [i, route] of appRoutes.entries()) {
      if (promisedFor(route) === 'public') continue
      const what = `${route.method} ${route.path}`
      if (route.method !== 'GET') {
        const { status, body } = await send(route, { ...cookie, [CSRF]: forged[i % forged.length]! })
        assert.deepEqual([status, body.error.type], [403, 'csrf_token_invalid'], what)
        writes++
      }
      const withKey = { ...cookie, [CSRF]: token, Authorization: `Bearer ${suite.api.key}` }
      assert.equal((await send(route, withKey)).status, 401, what)
    }
    assert.ok(writes > 40, String(writes))
    assert.equal(
      (await suite.api.request('GET', '/app/session', { key: null, headers: cookie })).status,
      200,
      'no forged request ended the session',
    )
  })
})
