import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { applyMapped } from '../../db/incoming/apply.ts'
import { insertLog } from '../../db/incoming/logs.ts'
import { getIncomingWebhook } from '../../db/incoming/webhooks.ts'
import type { Actor } from '../../db/model/actor.ts'
import { fitted } from '../../db/model/incoming/fit.ts'
import { mapPayload } from '../../db/model/incoming/mapping/map.ts'
import { connect } from '../../db/postgres/connect.ts'
import { payload } from './incoming-payload.ts'
import { recording, replay, type Statement } from './recording.ts'

/**
 * The floor of the bench of incoming webhooks, in a separate process: a bare Koa handler that parses the same body and
 * sends the statements of the same transaction through the same pool, without guards, verification, limits and mapping.
 * The statements are recorded first. Arguments: database, organization, webhook.
 */
const [url, organizationId, webhookId] = process.argv.slice(2) as [string, string, string]
const db = connect({ url })
const actor: Actor = { type: 'webhook', id: webhookId }
const webhook = await db.tenant(organizationId, actor, (tx) => getIncomingWebhook(tx, webhookId))
const body = payload()
const mapped = fitted(webhook, mapPayload(body, webhook))
const statements: Statement[] = []

async function record(kept: Statement[]): Promise<void> {
  const recorded = recording(db, kept)
  await recorded.tenant(organizationId, actor, async (tx) => {
    const { record } = await applyMapped(tx, webhook, body, mapped)
    await insertLog(tx, {
      webhook_id: webhookId,
      source_ip: '127.0.0.1',
      status: 'Success',
      action: 'Created',
      http_status: 200,
      payload_size: 600,
      response_time_ms: 1,
      error: null,
      message: 'contact created',
      record_id: record.id,
      run_id: null,
      warnings: [],
      replay_of: null,
      replay_id: null,
      headers: { host: 'x' },
      content_type: 'application/json',
      payload: JSON.stringify(body),
      payload_truncated: false,
      payload_rest: null,
      payload_sealed: null,
      mapped_data: mapped,
      error_details: undefined,
      verified: true,
      fingerprint: Buffer.alloc(32),
      has_delivery_id: false,
    })
  })
  recorded.stop()
}
// The first request creates the company, which later ones find.
await record([])
body.data.email = payload().data.email
mapped.fields.email = body.data.email
await record(statements)

const ids = new Map([organizationId, webhookId].map((id) => [id, id]))
const company = await db
  .system('companies')
  .where({ organization_id: organizationId })
  .first<{ id: string } | undefined>('id')
if (company) ids.set(company.id, company.id)

const app = new Koa()
app.use(async (ctx) => {
  const chunks: Buffer[] = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  JSON.parse(Buffer.concat(chunks).toString('utf8'))
  await db.tenant(organizationId, actor, (tx) => replay(tx, statements, { ids }))
  ctx.body = { success: true }
})
const server = createServer(app.callback())
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
