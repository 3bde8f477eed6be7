import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { appRoutes } from '../../../api/app/route-table.ts'
import { consoleRoutes } from '../../../api/console/route-table.ts'
import type { AppRoute, Route } from '../../../api/http/route.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { kindNames } from '../../../db/model/records/kinds/index.ts'
import { tenantTables } from '../../support/every-table.ts'
import { bodyOf, filled, QUERIES, tablesOf } from '../../support/route-paths.ts'
import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'

/** Tables that change by themselves: by a worker, the clock, or the victim's own sessions. */
const RESTLESS =
  /^(?:runs?|run_.*|events|organization_storage|deliver.*|idempotency_keys|limit_.*|exports|imports|.*_replays|import_.*|export_.*|bulk_job.*)$/

/** Every route of the tables, by a key and by a session of the attacker, with ids of the victim, and without ids. */
export const tenants: Family = {
  name: 'tenants',
  title: 'rows of another organization, by every route',
  async run(ground, tally) {
    const { attacker, victim, mark, send } = ground
    const bearer = { Authorization: `Bearer ${attacker.key}` }
    const all: [prefix: string, route: Route | AppRoute][] = [
      ...routes.map((route) => ['/v1', route] as [string, Route]),
      ...routes.map((route) => ['/app/v1', route] as [string, Route]),
      ...appRoutes
        .filter(({ role, path }) => role !== 'public' && !/^\/sessions?\b/.test(path))
        .map((route) => ['/app', route] as [string, AppRoute]),
    ]
    const session = await attacker.session('owner')
    const before = await restingState(ground)
    const ofEachKind = all.flatMap(([prefix, route]) => {
      const kinds = route.path.includes('{entity}') ? kindNames : ['']
      return kinds.map((kind) => ({ prefix, route, pattern: route.path.replace('{entity}', kind) }))
    })
    for (const { prefix, route, pattern } of ofEachKind) {
      const tables = tablesOf(pattern)
      if ('stream' in route.response && tables.length === 0) continue
      const ids = await Promise.all(tables.map(async ([name, table]) => [name, await ground.victimId(table)]))
      const path = prefix + filled(pattern, Object.fromEntries(ids)) + (QUERIES[route.id] ?? '')
      const { body, headers = {} } = bodyOf(route) as { body?: unknown; headers?: Record<string, string> }
      // An attempt that would wait for a run, or remove the attacker itself.
      if (tables.length === 0 && route.method !== 'GET') continue
      const answer = await send(
        route.method,
        path,
        { ...(prefix === '/v1' ? bearer : session), ...headers },
        route.method === 'GET' ? undefined : body,
      )
      const what = `${route.method} ${path}: ${answer.status} ${answer.text.slice(0, 200)}`
      tally.attempt(tables.length === 0 || [404, 405, 422].includes(answer.status), what)
      tally.attempt(
        !answer.text.includes(mark) && !answer.text.includes(victim.organizationId),
        `${what} leaks`,
      )
    }
    // Another member: the routes have used up the minute of the first one, and a 429 shows nothing.
    await openPages(ground, tally, await attacker.session('owner'))
    const after = await stateOf(ground)
    for (const [table, hash] of before) tally.attempt(after.get(table) === hash, `rows of ${table} changed`)
  },
}

/** Every page of the console, and every form, with ids of the victim. */
async function openPages(
  { victimId, victim, mark, send }: Ground,
  tally: Tally,
  { Cookie, 'X-CSRF-Token': csrf_token }: Record<string, string>,
): Promise<void> {
  for (const { method, path: pattern } of consoleRoutes) {
    const tables = tablesOf(pattern)
    if (/^\/(sign|reset|theme)/.test(pattern) || (tables.length === 0 && method !== 'GET')) continue
    const ids = await Promise.all(tables.map(async ([name, table]) => [name, await victimId(table)]))
    const path = filled(pattern, Object.fromEntries(ids))
    const form = new URLSearchParams({ csrf_token: csrf_token!, idempotency_key: randomUUID(), version: '1' })
    const { status, text } = await send(
      method,
      path,
      { Cookie: Cookie!, ...(method === 'POST' && { 'Content-Type': 'application/x-www-form-urlencoded' }) },
      method === 'POST' ? form.toString() : undefined,
    )
    const what = `${method} ${path}: ${status} ${text.slice(0, 200)}`
    tally.attempt(tables.length === 0 || [404, 409, 422].includes(status), what)
    tally.attempt(!text.includes(mark) && !text.includes(victim.organizationId), `${what} leaks`)
  }
}

/** The state once the victim's own work has ended. */
export async function restingState(ground: Ground): Promise<Map<string, string>> {
  let state = await stateOf(ground)
  for (let tries = 0; tries < 60; tries++) {
    await sleep(1_000)
    const next = await stateOf(ground)
    if ([...next].every(([table, hash]) => state.get(table) === hash)) return next
    state = next
  }
  throw new Error("the victim's rows do not come to rest")
}

/** A hash of the victim's rows, by table. */
export async function stateOf({ asOwner, victim }: Ground): Promise<Map<string, string>> {
  return asOwner(async (client) => {
    const state = new Map<string, string>()
    for (const { name, isView, organizationColumn } of await tenantTables(client)) {
      if (isView || RESTLESS.test(name)) continue
      const { rows } = await client.query(
        `select md5(coalesce(string_agg(row, ',' order by row), '')) as hash
         from (select (to_jsonb(t) - 'last_used_at')::text as row from ${name} t where ${organizationColumn} = $1) all_rows`,
        [victim.organizationId],
      )
      state.set(name, rows[0].hash)
    }
    return state
  })
}
