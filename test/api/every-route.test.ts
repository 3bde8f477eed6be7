import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { appRoutes } from '../../api/app/route-table.ts'
import { openApi } from '../../api/http/openapi.ts'
import type { AppRoute, Route } from '../../api/http/route.ts'
import { SCOPES, type Scope } from '../../api/http/scopes.ts'
import { routes } from '../../api/v1/route-table.ts'
import { MEMBER_ROLES } from '../../db/model/access/roles.ts'
import type { Answer } from '../support/answer.ts'
import { createKey } from '../support/api.ts'
import { fillEveryTable } from '../support/every-table.ts'
import {
  bodyOf,
  covers,
  filled,
  ID_PARAMETERS,
  mayNot,
  pathsOf,
  promisedFor,
  QUERIES,
  tablesOf,
} from '../support/route-paths.ts'
import { sessionHeaders } from '../support/session.ts'
import { recordStatements } from '../support/statements.ts'
import { withApi } from '../support/with-api.ts'

/**
 * Statements that are independent of the request, some of them occasional: the look-up of the key or its confirmation,
 * counts of limits, the last use of a key, plans that a connection makes again, the settings of a new connection, the
 * start of a transaction.
 */
const ASIDE =
  /from api_keys k|limit_windows|last_used_at = |^(?:listen|notify|select pg_notify|discard plans|set |begin)/i

describe('every route', () => {
  const suite = withApi()
  let mine: string
  let other: string
  before(async () => {
    await suite.db.asOwner(async (client) => {
      mine = await fillEveryTable(client)
      other = await fillEveryTable(client)
      // Rows derived from the catalogue, with a plan that does not limit the test.
      await client.query(
        "update organizations set plan = 'enterprise', limits = '{}', settings = '{}', env = '{}'",
      )
      await client.query('delete from pipelines')
      await client.query("update incoming_webhooks set target_entity = 'Contact', workflow_id = null")
    })
  })

  const idOf = async (table: string, organizationId: string): Promise<string> => {
    const column = table === 'memberships' ? 'user_id' : 'id'
    const row = await suite.db.system(table).where({ organization_id: organizationId }).first(column)
    return row?.[column] ?? assert.fail(`${table} has no row`)
  }
  const isAnswer = ({ status }: Answer, path: string) => assert.ok(status < 500, `${path}: ${status}`)

  it('of /v1 needs the promised scopes: not with none, nor with all but one of them', async () => {
    const keys = new Map<string, ReturnType<typeof createKey>>()
    const keyWith = async (scopes: readonly Scope[]) => {
      const name = scopes.join(' ')
      const made = keys.get(name) ?? createKey(suite.db, suite.api.organizationId, { scopes })
      keys.set(name, made)
      return made
    }
    const ids: Record<string, string> = {}
    for (const parameter of ID_PARAMETERS) ids[parameter] = randomUUID()
    // Their scope depends on the row, so it must exist.
    const create = (path: string) => suite.api.request('POST', path, { body: { entity: 'contacts' } })
    ids.import_id = (await create('/v1/imports')).body.id
    ids.export_id = (await create('/v1/exports')).body.id

    ids.file_id = await newFile()
    ids.view_id = await newView()
    ids.list_id = await newList()
    ids.job_id = await newJob()
    let walked = 0
    for (const route of routes) {
      const { method } = route
      // Only the member that determines the scope: without the rest of its body, an allowed operation has no effect.
      const isOfRecords = typeof route.scope === 'object' && 'ofRecords' in route.scope
      const sent = isOfRecords ? bodyOf(route) : {}
      for (const path of pathsOf(route, ids)) {
        const needed = promisedFor(method, path)
        const [only, ...others] = needed
        const sets: Scope[][] = [
          [],
          needed,
          ...needed.map((scope) => SCOPES.filter((one) => !covers(one, scope))),
          ...(only && others.length === 0
            ? SCOPES.filter((one) => covers(one, only)).map((one) => [one])
            : needed.map((one) => [one])),
        ]
        const walk = async (held: Scope[]) => {
          const what = `${method} ${path} with ${held.join(' ') || 'no scope'}`
          const target = await deletable(method, path)
          const answer = await suite.api.request(method, `/v1${target}`, {
            ...sent,
            key: (await keyWith(held)).key,
          })
          isAnswer(answer, what)
          const missing = needed.filter((scope) => !held.some((one) => covers(one, scope)))
          assert.equal(answer.status === 403, missing.length > 0, `${what}: ${answer.status}`)
          if (missing.length > 0) {
            assert.equal(answer.body.error.type, 'insufficient_scope')
            const named = /^the key lacks the scope (\S+)$/.exec(answer.body.error.message)?.[1]
            assert.ok(missing.includes(named as Scope), `${what}: ${answer.body.error.message}`)
          }
          walked++
        }
        await Promise.all(sets.map(walk))
      }
    }
    assert.ok(walked > 800, String(walked))
  })

  it('of /v1 is under /app/v1 for sessions: of a role with the scopes, with a CSRF token, never for keys', async () => {
    const ids: Record<string, string> = {}
    for (const parameter of ID_PARAMETERS) ids[parameter] = randomUUID()
    const create = (path: string) => suite.api.request('POST', path, { body: { entity: 'contacts' } })
    ids.import_id = (await create('/v1/imports')).body.id
    ids.export_id = (await create('/v1/exports')).body.id
    ids.file_id = await newFile()
    ids.view_id = await newView()
    ids.list_id = await newList()
    ids.job_id = await newJob()
    const sessions = await Promise.all(MEMBER_ROLES.map((role) => sessionHeaders(suite.db, suite.api, role)))
    const others = await sessionHeaders(suite.db, suite.api, 'owner')
    let walked = 0
    let refused = 0
    for (const route of routes) {
      // The walk has more requests than a session may send in a minute.
      await suite.db.system('limit_windows').delete()
      const { method } = route
      const isOfRecords = typeof route.scope === 'object' && 'ofRecords' in route.scope
      for (const path of pathsOf(route, ids)) {
        const needed = promisedFor(method, path)
        const target = await deletable(method, path)
        const send = (headers: Record<string, string>, key: string | null = null) =>
          suite.api.request(method, `/app/v1${target}`, {
            ...(isOfRecords ? bodyOf(route, { headers }) : {}),
            key,
            headers,
          })
        for (const [i, role] of MEMBER_ROLES.entries()) {
          const headers = sessions[i]!
          const what = `${method} ${path} as ${role}`
          const answer = await send(headers)
          isAnswer(answer, what)
          const missing = needed.filter((scope) => mayNot(role, scope))
          assert.equal(answer.status === 403, missing.length > 0, `${what}: ${answer.status}`)
          assert.notEqual(answer.status, 401, what)
          if (missing.length > 0) {
            assert.equal(answer.body.error.message, `the role lacks the scope ${missing[0]}`)
            refused++
          } else if (method !== 'GET') {
            const forged = walked % 2 === 0 ? {} : { 'X-CSRF-Token': others['X-CSRF-Token'] }
            const { status, body } = await send({ Cookie: headers.Cookie, ...forged })
            assert.deepEqual([status, body.error.type], [403, 'csrf_token_invalid'], what)
          }
          walked++
        }
        // Only some requests have a session, because each counts as a wrong credential of the address.
        for (const headers of walked % 4 === 0 ? [{}, others] : [{}]) {
          const { status, body } = await send(headers, suite.api.key)
          assert.deepEqual(
            [status, body.error.message],
            [401, 'sign in first'],
            `${method} ${path} with a key`,
          )
        }
        assert.equal((await send({})).status, 401, `${method} ${path} with nothing`)
      }
    }
    assert.ok(walked > 300 && refused >= 40, `${walked} ${refused}`)
  })

  it('of /v1 shows its scopes in OpenAPI', async () => {
    const document = await openApi(routes, appRoutes, '/')
    for (const { method, path, scope } of routes) {
      const shown = document.paths[`/v1${path}`]![method.toLowerCase()]!['x-scopes']
      if (typeof scope === 'string') {
        const promised = promisedFor(method, path)
        assert.deepEqual(shown, promised, `${method} ${path}`)
      } else assert.ok(shown!.length > 0, `${method} ${path}`)
    }
  })

  it('answers an id of another organization as one that does not exist: 404, by the same statements, byte for byte', async () => {
    const { key } = await createKey(suite.db, mine)
    const session = await sessionHeaders(suite.db, { ...suite.api, organizationId: mine }, 'owner')
    const all: [string, Route | AppRoute, object][] = [
      ...routes.map((route) => ['/v1', route, { key }] as [string, Route, object]),
      ...routes.map(
        (route) => ['/app/v1', route, { key: null, headers: session }] as [string, Route, object],
      ),
      ...appRoutes.map(
        (route) => ['/app', route, { key: null, headers: session }] as [string, AppRoute, object],
      ),
    ]
    // The same statements with the same numbers of rows take the same time, which a measurement could show only within
    // its noise.
    const statements = recordStatements()
    let compared = 0
    let read = 0
    for (const [prefix, route, options] of all) {
      const tables = tablesOf(route.path)
      // Each id in turn belongs to another organization, and the ids before it to the caller's.
      for (const [at, [name]] of tables.entries()) {
        const values = async (last: (table: string) => Promise<string>) => {
          const entries = tables.map(async ([parameter, table], i) => [
            parameter,
            i < at ? await idOf(table, mine) : await last(table),
          ])
          return Object.fromEntries(await Promise.all(entries)) as Record<string, string>
        }
        const send = async (given: Record<string, string>) => {
          statements.take()
          const path = prefix + filled(route.path, given) + (QUERIES[route.id] ?? '')
          const answer = await suite.api.request(route.method, path, {
            ...options,
            ...bodyOf(route, options),
          })
          const text = JSON.stringify(answer.body).replaceAll(answer.body.error?.request_id, '')
          const [status, type] = [answer.status, answer.headers.get('content-type')]
          const sent = statements.take().filter((text) => !ASIDE.test(text))
          read += sent.length
          return {
            status,
            type,
            sent,
            text: Object.values(given).reduce((rest, id) => rest.replaceAll(id, ''), text),
          }
        }
        const what = `${route.method} ${prefix}${route.path} with a foreign ${name}`
        const foreign = await send(await values((table) => idOf(table, other)))
        assert.equal(foreign.status, 404, `${what}: ${foreign.text}`)
        assert.deepEqual(foreign, await send(await values(async () => randomUUID())), what)
        compared++
      }
    }
    statements.stop()
    assert.ok(compared > 230, String(compared))
    assert.ok(read > 4 * compared, String(read))
  })

  /** The scope of a file depends on its record, so both must exist. */
  async function newFile(): Promise<string> {
    const { body } = await suite.api.request('POST', '/v1/objects/contacts', { body: { first_name: 'Ada' } })
    const file = await suite.api.request('POST', `/v1/objects/contacts/${body.id}/files?name=x.txt`, {
      body: 'x',
      headers: { 'Content-Type': 'text/plain' },
    })
    return file.body.id
  }

  /** Whether an allowed request deletes the file, which the next one needs. */
  async function newView(): Promise<string> {
    const view = { entity: 'contacts', name: 'All', shared: true }
    return (await suite.api.request('POST', '/v1/views', { body: view })).body.id
  }

  async function newList(): Promise<string> {
    const list = { entity: 'contacts', name: 'All', type: 'static' }
    return (await suite.api.request('POST', '/v1/lists', { body: list })).body.id
  }

  async function newJob(): Promise<string> {
    const job = { action: 'delete', query: { q: 'nobody' }, confirm: true }
    return (await suite.api.request('POST', '/v1/objects/contacts/bulk', { body: job })).body.id
  }

  /** The path, or that of a new row, since the first deletion with the scope is the last. */
  async function deletable(method: string, path: string): Promise<string> {
    if (method === 'DELETE' && path.startsWith('/files/')) return `/files/${await newFile()}`
    if (method === 'DELETE' && path.startsWith('/views/')) return `/views/${await newView()}`
    if (method === 'DELETE' && path.startsWith('/lists/')) return `/lists/${await newList()}`
    return path
  }
})
