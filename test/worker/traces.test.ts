import assert from 'node:assert/strict'
import { createHttp, type HttpClient } from '../../activities/http/client.ts'
import { type Deliveries, startDeliveries } from '../support/deliveries.ts'
import { until } from '../support/until.ts'
import { startWorker, type TestWorker } from '../support/worker.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const HEADER = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/

/** From a request through its event and the run that it starts to the events and calls of the run. */
describe('the trace of a request', () => {
  let on: Deliveries
  let worker: TestWorker
  let http: HttpClient
  let workflowId: string
  before(async () => {
    on = await startDeliveries()
    http = createHttp({ allow: ['127.0.0.0/8'] })
    worker = await startWorker(on.db, { secretsKey: on.api.secretsKey, http: http.call })
    const url = on.receiver.url
    await on.createWebhook({ events: ['contact.created', 'contact.greeted', 'workflow.completed'] })
    const spec = `name: Greet
trigger: {type: event, events: [contact.created]}
nodes:
  call: {type: api_request, config: {method: POST, url: "${url}"}, next: raise}
  own: {type: api_request, config: {method: POST, url: "${url}", headers: {Traceparent: own}}}
  raise: {type: emit_event, config: {event: contact.greeted, data: {}}, next: own}
`
    const { body } = await on.api.request('POST', '/v1/workflows', { body: { spec } })
    workflowId = body.workflow_id
    assert.ok(workflowId, JSON.stringify(body))
    await on.api.request('POST', `/v1/workflows/${workflowId}/activate`)
  })
  beforeEach(() => on.receiver.behave())
  after(async () => {
    await worker?.stop()
    await http?.close()
    await on?.stop()
  })

  /** The requests at the receiver once the run has ended: three events and two calls. */
  async function received() {
    await until(async () => on.receiver.received.length === 5)
    return on.receiver.received.map(({ headers, body }) => ({
      name: body === '' ? 'call' : (JSON.parse(body).event as string),
      traceparent: headers.traceparent!,
    }))
  }

  it('is one id at the receiver of each event and call, in the run and in the deliveries', async () => {
    const { status } = await on.api.request('POST', '/v1/objects/contacts', {
      body: { first_name: 'Ada' },
      headers: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` },
    })
    assert.equal(status, 201)
    const all = await received()
    assert.deepEqual(all.map(({ name }) => name).sort(), [
      'call',
      'call',
      'contact.created',
      'contact.greeted',
      'workflow.completed',
    ])
    const own = all.filter(({ traceparent }) => traceparent === 'own')
    assert.equal(own.length, 1, 'the author may name another')
    const parts = all.filter((one) => one !== own[0]).map(({ traceparent }) => HEADER.exec(traceparent)!)
    assert.deepEqual(new Set(parts.map((part) => part[1])), new Set([TRACE]))
    assert.equal(new Set(parts.map((part) => part[2])).size, 4, 'each has its own span')
    const [run] = await on.db.system('runs').where({ workflow_id: workflowId }).select('id')
    const { body } = await on.api.request('GET', `/v1/runs/${run.id}`)
    assert.equal(body.trace_id, TRACE)
    for (const { id } of await on.db.system('deliveries').select('id'))
      assert.equal((await on.get(id)).trace_id, TRACE)
  })

  it('is a new one without a valid header, another for each request', async () => {
    const ids = new Set<string>()
    for (const traceparent of [
      undefined,
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
      `00-${TRACE}-00f0-01`,
    ]) {
      on.receiver.behave()
      await on.api.request('POST', '/v1/objects/contacts', {
        body: { first_name: 'Bob' },
        headers: traceparent === undefined ? {} : { traceparent },
      })
      const found = (await received()).flatMap((one) => HEADER.exec(one.traceparent)?.[1] ?? [])
      assert.equal(new Set(found).size, 1)
      ids.add(found[0]!)
    }
    assert.equal(ids.size, 3)
    assert.equal(ids.has(TRACE), false)
  })

  it('continues that of the sender of an incoming webhook', async () => {
    const { body: webhook } = await on.app('POST', '/webhooks/incoming', { name: 'Form' })
    const { pathname } = new URL(webhook.url)
    const trace = TRACE.replace('4', '5')
    const { status } = await on.api.request('POST', pathname, {
      key: null,
      body: { email: 'eve@example.com' },
      headers: { 'x-webhook-secret': webhook.secret, traceparent: `00-${trace}-00f067aa0ba902b7-00` },
    })
    assert.equal(status, 200)
    for (const { traceparent } of await received())
      if (traceparent !== 'own') assert.equal(HEADER.exec(traceparent)?.[1], trace)
  })

  it('cannot be replaced by a header of the webhook', async () => {
    const { status, body } = await on.app('POST', '/webhooks/outgoing', {
      name: 'T',
      url: on.receiver.url,
      events: ['*'],
      headers: { traceparent: 'x' },
    })
    assert.deepEqual([status, body.detail[0].msg], [422, 'is set by the service'])
  })
})
