import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Client } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { Webhook } from 'standardwebhooks'
import { v7 as uuidv7 } from 'uuid'
import { createDeliver } from '../../activities/deliver.ts'
import { createHttp, type HttpClient } from '../../activities/effects/http.ts'
import { insertEvents } from '../../db/events.ts'
import { createLogger } from '../../db/log.ts'
import { seal } from '../../db/seal.ts'
import { eventsQueue } from '../../worker/match-events.ts'
import { deliveriesQueue } from '../../worker/queues/deliveries.ts'
import { Relay } from '../../worker/relay.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'

describe('deliveries on Temporal', () => {
  const key = randomBytes(32)
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const taskQueue = `test-deliveries-${uuidv7()}`
  let db: TestDatabase
  let organizationId: string
  let connection: NativeConnection
  let client: Client
  let worker: Worker
  let running: Promise<void>
  let relay: Relay
  let http: HttpClient
  let server: Server
  let answers: number[] = []
  let received: { headers: IncomingHttpHeaders; body: string }[] = []

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    http = createHttp({ allow: ['127.0.0.0/8'] })
    server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      received.push({ headers: request.headers, body })
      response.writeHead(answers.shift() ?? 204, { location: '/elsewhere' }).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    connection = await NativeConnection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
    client = new Client({ connection })
    worker = await Worker.create({
      connection,
      taskQueue,
      workflowsPath: fileURLToPath(new URL('../../workflows/deliver.ts', import.meta.url)),
      activities: createDeliver({ db, http, secretsKey: key }),
    })
    running = worker.run()
    relay = new Relay({
      db,
      client,
      log: createLogger('test', 'silent'),
      queues: [eventsQueue(), deliveriesQueue({ taskQueue, log: createLogger('test', 'silent') }) as never],
    })
    await relay.start()
  })
  beforeEach(() => {
    received = []
    answers = []
  })
  after(async () => {
    await relay?.close()
    worker?.shutdown()
    await running
    await connection?.close()
    server?.closeAllConnections()
    server?.close()
    await http?.close()
    await db?.drop()
  })

  /** An endpoint of its own for each test, and one event that it wants. @returns the delivery, once it has ended. */
  async function deliverOne(url?: string) {
    const name = `test.e${randomBytes(4).toString('hex')}`
    const port = (server.address() as AddressInfo).port
    await db.system('outgoing_webhooks').insert({
      organization_id: organizationId,
      id: uuidv7(),
      name: 'Receiver',
      url: url ?? `http://127.0.0.1:${port}/`,
      events: [name],
      secret_sealed: seal(key, secret),
      retry_schedule: [0, 0],
    })
    const [id] = await db.tenant(organizationId, testActor, (tx) =>
      insertEvents(tx, [{ name, data: { id: uuidv7(), first_name: 'Zoë' } }]),
    )
    for (;;) {
      const row = await db
        .system('deliveries')
        .where({ organization_id: organizationId, event_id: id })
        .first()
      if (row?.ended_at) return { name, row }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  it('arrive once, signed, at the cost of one workflow task', async () => {
    const { name, row } = await deliverOne()
    assert.equal(row.status, 'succeeded')
    assert.equal(received.length, 1)
    const { headers, body } = received[0]!
    const event = new Webhook(secret).verify(body, headers as Record<string, string>) as { event: string }
    assert.equal(event.event, name)
    const handle = client.workflow.getHandle(`delivery:${row.id}`)
    await handle.result()
    const { events } = await handle.fetchHistory()
    assert.ok(events!.length <= 8, `${events!.length} events`)
    assert.equal(events!.filter((one) => one.workflowTaskCompletedEventAttributes).length, 1)
  })

  it('are retried with the same webhook-id until the receiver accepts', async () => {
    answers = [500, 503]
    const { row } = await deliverOne()
    assert.deepEqual([row.status, row.attempts], ['succeeded', 3])
    assert.equal(new Set(received.map(({ headers }) => headers['webhook-id'])).size, 1)
    const attempts = await db.system('delivery_attempts').where({ delivery_id: row.id }).orderBy('attempt')
    assert.deepEqual(
      attempts.map((one) => [one.status, one.http_status]),
      [
        ['failed', 500],
        ['failed', 503],
        ['succeeded', 204],
      ],
    )
  })

  it('fail when the schedule is used up; a redirect is a failure', async () => {
    answers = [302, 302, 302]
    const { row } = await deliverOne()
    assert.deepEqual([row.status, row.attempts, received.length], ['failed', 3, 3])
  })

  it('turn the endpoint off on 410', async () => {
    answers = [410]
    const { row } = await deliverOne()
    assert.deepEqual([row.status, row.attempts], ['failed', 1])
    const webhook = await db.system('outgoing_webhooks').where({ id: row.webhook_id }).first()
    assert.equal(webhook.status, 'Inactive')
  })

  it('never reach a private address', async () => {
    const { row } = await deliverOne('http://169.254.169.254/latest')
    assert.equal(row.status, 'failed')
    assert.match(row.error, /egress_refused/)
  })
})
