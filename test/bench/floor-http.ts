import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import type { AppDeps } from '../../api/deps.ts'
import { answerPresumed } from '../../api/http/presumed.ts'
import type { Caller } from '../../api/http/scopes.ts'
import { v1Realm } from '../../api/v1/realm.ts'
import { recordQuery } from '../../api/v1/record-query.ts'
import type { Actor } from '../../db/model/actor.ts'
import { createSchema, updateSchema } from '../../db/model/records/schemas.ts'
import { connect } from '../../db/postgres/connect.ts'
import type { Tenant } from '../../db/postgres/tenancy.ts'
import type { Send } from '../../db/postgres/transaction.ts'
import { createMany, createRecord } from '../../db/records/create.ts'
import { listRecords } from '../../db/records/list.ts'
import { getRecord } from '../../db/records/read.ts'
import { updateRecord } from '../../db/records/update.ts'
import { BATCH, batched } from './record-cases.ts'
import { recording, replay, type Statement } from './recording.ts'

/**
 * The floor of the record benches, in a separate process: a bare Koa handler that sends the same SQL through the same
 * pool, without authentication, limits, validation or envelope. The statements of each request are first recorded from
 * the API's code. GET of one record has two more floors (`readers`). Arguments: database, organization.
 */
const [url, organizationId] = process.argv.slice(2) as [string, string]
const db = connect({ url })
const actor: Actor = { type: 'system', id: null }
const PATH = '/v1/objects/contacts'
/** A number that does not occur otherwise in the statements. */
const VERSION = 987_654_321

async function record(work: (tx: Tenant) => Promise<unknown>): Promise<Statement[]> {
  const statements: Statement[] = []
  const recorded = recording(db, statements)
  await recorded.tenant(organizationId, actor, work)
  recorded.stop()
  return statements
}

const body = createSchema('contacts').parse({
  first_name: 'Floor',
  email: 'floor@example.com',
  custom_fields: { tier: 'gold', score: 5 },
})
const sample = await db.tenant(organizationId, actor, (tx) => createRecord(tx, 'contacts', body))
await db
  .system('contacts')
  .where({ organization_id: organizationId, id: sample.id })
  .update({ version: VERSION })
const patch = updateSchema('contacts').parse({ job_title: 'Floor' })
const creating = await record((tx) => createRecord(tx, 'contacts', body))
const reading = await record((tx) => getRecord(tx, 'contacts', sample.id))
const updating = await record((tx) => updateRecord(tx, 'contacts', sample.id, patch))
/** For a batch, only the statement that inserts the rows, their histories and events. */
const creatingMany = (
  await record((tx) =>
    createMany(
      tx,
      'contacts',
      Array.from({ length: BATCH }, (_, i) => createSchema('contacts').parse(batched(0, i))),
    ),
  )
).filter(({ sql }) => sql.includes('insert into contacts'))
const listing = new Map<string, Statement[]>()

const whole = [organizationId, organizationId] as const
const one = (id: string) => ({ ids: new Map([whole, [sample.id, id]]), version: VERSION })

/** The realm /v1, for `access`. */
const { authenticate, presume, limit } = v1Realm({ db, config: { TRUSTED_PROXIES: 0 } } as AppDeps)
const system = { trx: db.system, last() {} } as Partial<Tenant> as Tenant
/** Further floors of GET, by the header `x-floor`. */
const readers: Record<string, (ctx: Koa.Context, id: string) => Promise<object[]>> = {
  /** Without tenancy: the statement alone. */
  bare: (_, id) => replay(system, reading, one(id)),
  /** With authentication, limits and tenancy only. */
  async access(ctx, id) {
    let rows: object[] = []
    const answer = async (caller: Caller | undefined, afterBegin?: (send: Send) => void) => {
      await limit!(ctx, caller!)
      const read = (tx: Tenant) => replay(tx, reading, one(id))
      rows = await db.tenant(caller!.organization.id, actor, read, undefined, { readOnly: true, afterBegin })
    }
    const presumed = presume!(ctx)
    const find = () => authenticate(ctx, undefined)
    await (presumed ? answerPresumed(ctx, presumed, find, answer) : answer(await find()))
    return rows
  },
}

const app = new Koa()
app.use(async (ctx) => {
  const reader = readers[ctx.get('x-floor')]
  if (reader) {
    const [row] = await reader(ctx, ctx.path.slice(PATH.length + 1))
    ctx.body = row
    return
  }
  for await (const _ of ctx.req);
  const id = ctx.path.slice(PATH.length + 1)
  const list = listing.get(ctx.url)
  const rows = await db.tenant(organizationId, actor, (tx) => {
    if (ctx.path.endsWith('/batch')) return replay(tx, creatingMany, { ids: new Map([whole]) })
    if (ctx.method === 'POST') return replay(tx, creating, { ids: new Map([whole]) })
    if (ctx.method === 'PATCH') return replay(tx, updating, one(id))
    if (list) return replay(tx, list, { ids: { get: (id: string) => id } })
    return replay(tx, reading, one(id))
  })
  ctx.status = ctx.method === 'POST' ? 201 : 200
  ctx.body = list ? rows : (rows[0] ?? { object: 'contact' })
})
const server = createServer(app.callback())
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))

/** Lists are recorded before they are requested. */
process.on('message', async (paths: string[]) => {
  for (const path of paths) {
    const query = Object.fromEntries(new URL(path, 'http://floor').searchParams)
    const { fields: _, ...parsed } = recordQuery('contacts').parse(query)
    const statements = await record((tx) =>
      listRecords(tx, 'contacts', { ...parsed, offset: parsed.offset ?? 0 }),
    )
    listing.set(path, statements)
  }
  process.send?.({})
})
process.on('disconnect', () => process.exit())
