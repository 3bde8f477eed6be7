import { deepEqual, equal, match, notEqual, ok } from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { createHttp } from '../../activities/http/client.ts'
import { putSecret } from '../../db/access/secrets.ts'
import type { Definition, NodeSpec } from '../../workflows/language/definition.ts'
import { testActor } from '../support/database.ts'
import { everyRow } from '../support/every-byte.ts'
import { type HttpServer, startHttpServer } from '../support/http-server.ts'
import { withWorker } from '../support/with-worker.ts'
import { queueRun, untilRun } from '../support/worker.ts'

const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const secretsKey = randomBytes(32)
const http = createHttp({ allow: ['127.0.0.0/8'] })

describe('nodes that send messages', () => {
  const suite = withWorker({ http: http.call, secretsKey })
  let server: HttpServer
  let url: string
  let received: { path: string; headers: Record<string, string>; body: string }[] = []
  let answers: [status: number, body?: string][] = []

  before(async () => {
    server = await startHttpServer(async (request, response, body) => {
      received.push({ path: request.url!, headers: request.headers as Record<string, string>, body })
      const [status, text = ''] = answers.shift() ?? [200, 'ok']
      response.writeHead(status, { 'content-type': 'text/plain', location: '/elsewhere' }).end(text)
    })
    url = server.url
    await suite.db.tenant(suite.organizationId, testActor, async (tx) => {
      await putSecret(tx, secretsKey, 'signing', SECRET)
      await putSecret(tx, secretsKey, 'not_standard', 'correct horse battery staple')
      await putSecret(tx, secretsKey, 'slack', `${url}/services/T0/B0/s3cr3tPart`)
    })
  })
  beforeEach(() => {
    received = []
    answers = []
  })
  after(async () => {
    await server?.close()
    await http.close()
  })

  const run = async (node: Omit<NodeSpec, 'id'>) => {
    const definition: Definition = {
      name: 'Send',
      trigger: { type: 'manual' },
      inputs: {},
      edges: [],
      settings: {},
      nodes: [{ id: 'send', ...node }],
      outputs: { it: '{{ nodes.send.output }}' },
    }
    return untilRun(suite.db, await queueRun(suite.db, suite.organizationId, definition))
  }
  const webhook = (config: Record<string, unknown> = {}, node: Partial<NodeSpec> = {}) =>
    run({
      type: 'send_webhook',
      config: {
        url: `${url}/hook`,
        secret: '{{ secrets.signing }}',
        event: 'order.ready',
        data: { total: '9.50' },
        ...config,
      },
      ...node,
    })
  const everyText = async () => [...(await everyRow(suite.db)).values()].join()
  const retry = { max_attempts: 3, initial_interval: '10ms' }

  it('post a webhook whose signature a receiver verifies, with one id and body for all attempts', async () => {
    answers = [[500], [302]]
    const { status, error, outputs } = await webhook({ headers: { 'X-Route': 7 } }, { retry })
    equal(status, 'completed', JSON.stringify(error))
    equal(received.length, 3)
    const bodies = new Set(received.map(({ body }) => body))
    equal(bodies.size, 1)
    equal(new Set(received.map(({ headers }) => headers['webhook-id'])).size, 1)
    for (const { headers, body } of received) {
      const message = new Webhook(SECRET).verify(body, headers) as Record<string, unknown>
      deepEqual([message.event, message.data], ['order.ready', { total: '9.50' }])
      equal(message.id, headers['webhook-id'])
      ok(Math.abs(Date.parse(message.created_at as string) - Date.now()) < 60_000)
      equal(headers['x-route'], '7')
    }
    deepEqual(outputs, { it: { id: received[0]!.headers['webhook-id'], status: 200 } })
    await webhook()
    notEqual(received[3]!.headers['webhook-id'], received[0]!.headers['webhook-id'])
    ok(!(await everyText()).includes(SECRET.slice(6)), 'the secret is in a row')
  })

  it('give a webhook up at once after 410, or with a secret of another form', async () => {
    answers = [[410, 'gone']]
    const gone = await webhook({}, { retry })
    deepEqual([gone.status, gone.error?.code, received.length], ['failed', 'unexpected_status', 1])
    const other = await webhook({ secret: '{{ secrets.not_standard }}' }, { retry })
    equal(other.error?.code, 'invalid_config')
    match(other.error!.message, /must be whsec_ and base64/)
    equal(received.length, 1)
    const own = await webhook({ headers: { 'Webhook-Id': 'x' } })
    match(own.error!.message, /is set by the node/)
  })

  const slack = (config: Record<string, unknown>, node: Partial<NodeSpec> = {}) =>
    run({ type: 'slack_message', config: { webhook_url: '{{ secrets.slack }}', ...config }, ...node })

  it('post to Slack, where only an author can notify people', async () => {
    const text = '<!channel> *Won* <@U123>, <https://x.test|details>'
    const blocks = [{ type: 'section', text: { type: 'mrkdwn', text: '<!here> hi' } }]
    equal((await slack({ text, blocks })).status, 'completed')
    equal((await slack({ text, mentions: true })).status, 'completed')
    const [plain, notifying] = received.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
    deepEqual(plain, {
      text: '&lt;!channel> *Won* &lt;@U123>, <https://x.test|details>',
      blocks: [{ type: 'section', text: { type: 'mrkdwn', text: '&lt;!here> hi' } }],
    })
    deepEqual(notifying, { text })
    equal(received[0]!.path, '/services/T0/B0/s3cr3tPart')
    ok(!(await everyText()).includes('s3cr3tPart'), 'the URL is in a row')
  })

  it('explain what Slack answers, and try again what may pass', async () => {
    answers = [[404, 'channel_not_found']]
    const missing = await slack({ text: 'x' }, { retry })
    equal(missing.error?.code, 'slack_error')
    match(
      missing.error!.message,
      /^Slack answered 404 channel_not_found: the channel of the webhook no longer exists/,
    )
    equal(received.length, 1)
    answers = [[429, 'rate_limited'], [500]]
    equal((await slack({ text: 'x' }, { retry })).status, 'completed')
    equal(received.length, 4)
    answers = [[400, 'something_new']]
    match((await slack({ text: 'x' })).error!.message, /^Slack answered 400 something_new$/)
  })
})
