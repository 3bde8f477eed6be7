import { z } from 'zod'
import { appRoutes } from '../../../api/app/route-table.ts'
import type { AppRoute, Route } from '../../../api/http/route.ts'
import { routes } from '../../../api/v1/route-table.ts'
import { type KindName, referencesOf } from '../../../db/model/records/kind.ts'
import { kindNames, kinds } from '../../../db/model/records/kinds/index.ts'
import { tenantTables } from '../../support/every-table.ts'
import { createExample } from '../../support/example-of.ts'
import { bodyOf, filled, QUERIES, tablesOf } from '../../support/route-paths.ts'
import type { Family, Tally } from '../family.ts'
import type { Ground } from '../ground.ts'
import { idPlaces, kindOfPath, type Place, tableAt, withId } from '../id-places.ts'
import { Caller, eventually } from '../workflows.ts'
import { restingState, stateOf } from './tenants.ts'

const MARK = 'foreignmark'

/** Columns that keep a request as it was sent: they may name any id, and show nothing of its row. */
const KEPT = ['query', 'list_query', 'filter', 'data', 'request', 'response', 'body']

/** Every place of a body or query that takes an id, by the schemas of the routes, with an id of another organization. */
export const idPlacesFamily: Family = {
  name: 'id-places',
  title: 'ids of another organization in every place of a body or query that takes one',
  async run(ground, tally) {
    // The organization with rows of every kind attacks, so that the ids in its paths are right.
    const own = ground.victim
    const foreign = await foreignRows(ground)
    const target = { ...ground, victim: ground.attacker }
    const before = await restingState(target)
    const bearer = { Authorization: `Bearer ${own.key}` }
    const session = await own.session('owner')
    for (const [prefix, route] of [
      ...routes.map((one) => ['/v1', one] as [string, Route | AppRoute]),
      ...appRoutes.filter(({ role }) => role !== 'public').map((one) => ['/app', one] as [string, AppRoute]),
    ])
      for (const [part, place] of placesOf(route)) {
        const table = tableAt(place, route.path)
        const id = foreign[table]
        if (id === undefined) throw new Error(`there is no foreign row of ${table}`)
        const ids = await Promise.all(
          tablesOf(route.path).map(async ([name, of]) => [name, await ground.victimId(of)]),
        )
        const path = prefix + filled(route.path, Object.fromEntries(ids)) + (QUERIES[route.id] ?? '')
        const query = part === 'query' ? `${path.includes('?') ? '&' : '?'}${place.join('.')}=${id}` : ''
        const owners = await ownersOf(route.path, ground)
        const body = part === 'body' ? withId(bodyOf(route).body, place, route.path, id, owners) : undefined
        const headers = prefix === '/v1' ? bearer : session
        const { status, text } = await ground.send(route.method, path + query, headers, body)
        const what = `${route.method} ${path}${query} with ${place.join('.')} of ${table}: ${status} ${text.slice(0, 300)}`
        const isLeak = text.includes(MARK) || text.includes(ground.attacker.organizationId)
        tally.attempt(status < 500 && (table === 'organizations' || !isLeak), what)
      }
    await namesNone(ground, tally, Object.values(foreign))
    const after = await stateOf(target)
    for (const [table, hash] of before)
      tally.attempt(after.get(table) === hash, `rows of ${table} of the other organization changed`)
  },
}

/** The own records that a new one of the kind of a path requires. */
async function ownersOf(path: string, ground: Ground): Promise<Record<string, string>> {
  const kind = kindOfPath(path)
  const required = kind ? referencesOf(kinds[kind]).filter(([, field]) => field.required) : []
  return Object.fromEntries(
    await Promise.all(required.map(async ([name, { to }]) => [name, await ground.victimId(to)])),
  )
}

function placesOf({ body, query }: Route | AppRoute): [part: 'body' | 'query', place: Place][] {
  return [
    ...(body ? idPlaces(body).map((place) => ['body', place] as ['body', Place]) : []),
    ...(query instanceof z.ZodType
      ? idPlaces(query).map((place) => ['query', place] as ['query', Place])
      : []),
  ]
}

/** No row of the attacking organization may name a foreign id, but as part of a request that is kept. */
async function namesNone({ asOwner, victim }: Ground, tally: Tally, ids: string[]): Promise<void> {
  await asOwner(async (client) => {
    for (const { name, isView, organizationColumn } of await tenantTables(client)) {
      if (isView) continue
      const { rows } = await client.query(
        `select left(row, 300) as row from (
           select (to_jsonb(t) - cast($3 as text[]))::text as row from ${name} t where ${organizationColumn} = $1
         ) of_organization where row ~ $2 limit 3`,
        [victim.organizationId, ids.join('|'), KEPT],
      )
      tally.attempt(rows.length === 0, `${name} names a foreign id: ${JSON.stringify(rows)}`)
    }
  })
}

/** A row of each table in the other organization, all with the mark. @returns their ids by table. */
async function foreignRows(ground: Ground): Promise<Record<string, string>> {
  const { attacker, db, send } = ground
  const caller = new Caller(ground, attacker)
  const session = await attacker.session('owner')
  const app = async (path: string, body: object) => {
    const { status, text } = await send('POST', `/app${path}`, session, body)
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
    return JSON.parse(text) as Record<string, string>
  }
  const record = { last_name: MARK, email: `${MARK}@example.com` }
  const create = async (kind: KindName, values: object) => {
    const text = ['last_name', 'name', 'title', 'subject', 'body', 'source'].find(
      (name) => name in kinds[kind].fields,
    )!
    const { id } = await caller.done('POST', `/objects/${kind}`, { ...values, [text]: MARK })
    return { id: String(id) }
  }
  for (const kind of kindNames) await createExample(kind, create)
  await caller.done('POST', '/views', { entity: 'contacts', name: MARK, query: { q: MARK }, shared: true })
  await caller.done('POST', '/knowledge/collections', { name: MARK })
  const approval = `name: ${MARK}\nnodes:\n  ask: {type: approval, config: {title: ${MARK}, assignees: [a@example.com]}}\n`
  const run = await caller.run(await caller.workflow(approval))
  const webhook = await app('/webhooks/incoming', { name: MARK })
  const secret = { 'X-Webhook-Secret': webhook.secret! }
  await send('POST', `/webhooks/incoming/${webhook.id}`, secret, record)
  await app('/webhooks/outgoing', { name: MARK, url: 'http://127.0.0.1:9/', events: ['run.failed'] })
  await app(`/webhooks/incoming/${webhook.id}/replays`, {
    since: new Date(Date.now() - 60_000).toISOString(),
  })
  const waits = () => db.system('run_waits').where({ run_id: run }).first('id')
  if (!(await eventually(waits, 60))) throw new Error('the foreign run does not wait for its approval')
  const others =
    'views knowledge_collections workflows runs run_waits incoming_logs incoming_replays outgoing_webhooks'
  const found = await Promise.all(
    [...kindNames, ...others.split(' ')].map(async (table) => {
      const row = await db
        .system(table)
        .where({ organization_id: attacker.organizationId })
        .orderBy('id', 'desc')
        .first('id')
      return [table, row.id]
    }),
  )
  const { user_id } = await db
    .system('memberships')
    .where({ organization_id: attacker.organizationId })
    .first('user_id')
  return { ...Object.fromEntries(found), memberships: user_id, organizations: attacker.organizationId }
}
