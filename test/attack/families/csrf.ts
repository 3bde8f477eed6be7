import { randomUUID } from 'node:crypto'
import { appRoutes } from '../../../api/app/route-table.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { filled, ID_PARAMETERS, pathsOf } from '../../support/route-paths.ts'
import type { Family } from '../family.ts'

/** The writes of one user, whose requests are limited. */
const WRITES = 15

/** Every write of /app and /app/v1 with the cookie of a session, and without its token or with another. */
export const csrf: Family = {
  name: 'csrf',
  title: 'writes with the cookie of a session alone',
  async run({ attacker, victim, send }, tally) {
    const other = await attacker.session('owner')
    const ids: Record<string, string> = Object.fromEntries(ID_PARAMETERS.map((name) => [name, randomUUID()]))
    const writes = [
      ...appRoutes
        .filter(({ method, role }) => method !== 'GET' && role !== 'public')
        .map(({ method, path }) => [method, `/app${filled(path, ids)}`] as const),
      ...routes
        .filter(({ method }) => method !== 'GET')
        .map((route) => [route.method, `/app/v1${pathsOf(route, ids)[0]}`] as const),
    ]
    const ORIGIN = 'https://evil.example'
    let cookie: Record<string, string> = {}
    let session: Record<string, string> = {}
    for (const [n, [method, path]] of writes.entries()) {
      if (n % WRITES === 0) session = await victim.session('owner')
      const { 'X-CSRF-Token': token = '', ...rest } = session
      cookie = rest
      for (const one of [
        undefined,
        '',
        'x',
        `${token}x`,
        token.slice(0, -1),
        token.toUpperCase(),
        other['X-CSRF-Token'],
      ]) {
        const headers = { ...cookie, Origin: ORIGIN, ...(one === undefined ? {} : { 'X-CSRF-Token': one }) }
        const { status, headers: answered } = await send(method, path, headers)
        const what = `${method} ${path} with the token ${one}: ${status}`
        tally.attempt([401, 403].includes(status), what)
        tally.attempt(answered.get('access-control-allow-origin') === null, `${what} lets ${ORIGIN} read`)
      }
    }
    const alive = await send('GET', '/app/session', cookie)
    tally.attempt(alive.status === 200, 'a forged request ended the session')
  },
}
