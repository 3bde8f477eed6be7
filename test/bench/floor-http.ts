import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { connect } from '../../db/connect.ts'
import { createSchema } from '../../db/records/schemas.ts'
import { createRecord, getRecord } from '../../db/records/store.ts'
import type { Actor } from '../../db/tenancy.ts'
import { recording, replay, type Statement } from './recording.ts'

/**
 * The floor of the record benches, in a process of its own: a bare Koa handler that sends the same SQL through the
 * same pool, without authentication, limits, validation or envelope. Arguments: database, organization, contact.
 */
const [url, organizationId, contactId] = process.argv.slice(2) as [string, string, string]
const db = connect({ url })
const actor: Actor = { type: 'system', id: null }
const keep = new Set([organizationId, contactId])

const reads: Statement[] = []
await recording(db, reads).tenant(organizationId, actor, (tx) => getRecord(tx, 'contacts', contactId))
const writes: Statement[] = []
const body = createSchema('contacts').parse({ first_name: 'Floor', email: 'floor@example.com' })
await recording(db, writes).tenant(organizationId, actor, (tx) => createRecord(tx, 'contacts', body))

const app = new Koa()
app.use(async (ctx) => {
  for await (const _ of ctx.req);
  const statements = ctx.method === 'POST' ? writes : reads
  const result = await db.tenant(organizationId, actor, (tx) => replay(tx, statements, keep))
  ctx.status = ctx.method === 'POST' ? 201 : 200
  ctx.body = (result as { rows: object[] }).rows[0] ?? { object: 'contact' }
})
const server = createServer(app.callback())
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
