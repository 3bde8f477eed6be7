import { randomUUID } from 'node:crypto'
import { SCOPES, type Scope } from '../../../api/http/scopes.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { bodyOf, covers, ID_PARAMETERS, pathsOf, promisedFor } from '../../support/route-paths.ts'
import type { Family } from '../family.ts'

/** Every route of /v1 with no scope, and with each one alone. */
export const scopes: Family = {
  name: 'scopes',
  title: 'every route of /v1 with a key of each scope',
  async run({ attacker, send }, tally) {
    const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })
    const ids: Record<string, string> = Object.fromEntries(ID_PARAMETERS.map((name) => [name, randomUUID()]))
    const create = async (path: string): Promise<string> =>
      JSON.parse((await send('POST', path, bearer(attacker.key), { entity: 'contacts' })).text).id
    ids.import_id = await create('/v1/imports')
    ids.export_id = await create('/v1/exports')
    ids.file_id = await attacker.file('own')
    const view = { entity: 'contacts', name: 'All', shared: true }
    ids.view_id = JSON.parse((await send('POST', '/v1/views', bearer(attacker.key), view)).text).id
    const list = { entity: 'contacts', name: 'All', type: 'static' }
    ids.list_id = JSON.parse((await send('POST', '/v1/lists', bearer(attacker.key), list)).text).id
    const job = { action: 'delete', query: { q: 'nobody' }, confirm: true }
    ids.job_id = JSON.parse(
      (await send('POST', '/v1/objects/contacts/bulk', bearer(attacker.key), job)).text,
    ).id
    const sets: Scope[][] = [[], ...SCOPES.map((scope) => [scope])]
    const keys = await Promise.all(sets.map((set) => attacker.keyWith(set)))
    for (const route of routes) {
      const isOfRecords = typeof route.scope === 'object' && 'ofRecords' in route.scope
      for (const path of pathsOf(route, ids)) {
        const needed = promisedFor(route.method, path)
        const { body, headers = {} } = (isOfRecords ? bodyOf(route) : {}) as {
          body?: unknown
          headers?: Record<string, string>
        }
        await Promise.all(
          sets.map(async (held, i) => {
            const missing = needed.filter((scope) => !held.some((one) => covers(one, scope)))
            if (missing.length === 0) return
            const { status, text } = await send(
              route.method,
              `/v1${path}`,
              { ...bearer(keys[i]!), ...headers },
              body,
            )
            tally.attempt(
              status === 403 && text.includes('insufficient_scope'),
              `${route.method} ${path} with ${held.join(' ') || 'no scope'}: ${status}`,
            )
          }),
        )
      }
    }
  },
}
