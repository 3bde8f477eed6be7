import assert from 'node:assert/strict'
import { connect, type Database } from '../../db/postgres/connect.ts'
import { ownerSession } from '../bench/setup.ts'
import { problemsIn } from '../support/logs.ts'
import { type ReceivedSpan, startCollector } from '../support/otlp.ts'
import { startReceiver } from '../support/receiver.ts'
import { startStack, type TestStack } from '../support/stack.ts'
import { until } from '../support/until.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'
const SECRET = 'planted-secret-of-a-header'

/** Api and worker in separate processes, which share only PostgreSQL. */
describe('the spans of a request', () => {
  let stack: TestStack
  let db: Database
  let collector: Awaited<ReturnType<typeof startCollector>>
  let receiver: Awaited<ReturnType<typeof startReceiver>>
  let workflowId: string
  const request = async (method: string, path: string, body?: object, headers: object = {}) => {
    const answer = await fetch(stack.apiUrl + path, {
      method,
      headers: { authorization: `Bearer ${stack.key}`, 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever JSON came back
    const read: any = await answer.json()
    assert.ok(answer.ok, JSON.stringify(read))
    return read
  }

  before(async () => {
    collector = await startCollector()
    receiver = await startReceiver()
    stack = await startStack({
      onSuite: true,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_BSP_SCHEDULE_DELAY: '100',
        // Spans whose export takes longer are dropped, and not exported again: by default 10 s, which a busy machine may
        // need.
        OTEL_EXPORTER_OTLP_TIMEOUT: '100000',
        OTEL_BSP_EXPORT_TIMEOUT: '110000',
        EGRESS_ALLOW: '127.0.0.0/8',
        ALLOW_INSECURE_WEBHOOKS: 'true',
      },
    })
    db = connect({ url: stack.databaseUrl })
    const app = await ownerSession(stack)
    await app('/webhooks/outgoing', {
      name: 'T',
      url: `${receiver.url}/path-with-token`,
      events: ['contact.created', 'contact.greeted'],
      headers: { 'X-Own': SECRET },
    })
    const spec = `name: Greet
trigger: {type: event, events: [contact.created]}
nodes:
  text: {type: set_fields, config: {fields: {text: hello}}, next: call}
  call:
    type: api_request
    config: {method: POST, url: "${receiver.url}/path-with-token", headers: {X-Own: "${SECRET}"}}
    next: raise
  raise: {type: emit_event, config: {event: contact.greeted, data: {}}}
`
    workflowId = (await request('POST', '/v1/workflows', { spec })).workflow_id
    await request('POST', `/v1/workflows/${workflowId}/activate`)
  })
  after(async () => {
    await db?.close()
    await stack?.stop()
    receiver?.close()
    collector?.close()
  })
  beforeEach(() => receiver.behave())

  /** What arrived and what is stored, for the error of a wait. */
  const state = async () => ({
    spans: collector.spans.map(({ traceId, name }) => `${traceId}: ${name}`),
    received: receiver.received.length,
    runs: await db.system('runs').select('status', 'trace_id', 'error'),
    deliveries: await db.system('deliveries').select('status', 'held_for', 'attempts', 'error', 'relay_id'),
    problems: problemsIn(stack.dataDir),
  })
  const traced = (trace: string) => collector.spans.filter(({ traceId }) => traceId === trace)
  const named = (spans: ReceivedSpan[], name: string, parent?: ReceivedSpan) => {
    const found = spans.filter((one) => one.name === name && (!parent || one.parentSpanId === parent.spanId))
    assert.equal(found.length, 1, `${name}: ${JSON.stringify(spans, null, 1)}`)
    return found[0]!
  }

  it('are one tree, from the caller over the event and the run to each delivery', async () => {
    const traceparent = `00-${TRACE}-${CALLER}-01`
    await request('POST', '/v1/objects/contacts', { first_name: SECRET }, { traceparent })
    // All are awaited before any is compared: if one is missing, the others and the deliveries say why.
    await until(() => traced(TRACE).length >= 11, state)
    const spans = traced(TRACE)

    const root = named(spans, 'POST /v1/objects/contacts')
    assert.deepEqual([root.parentSpanId, root.service, root.kind], [CALLER, 'agx-api', 2])
    assert.equal(root.attributes['http.response.status_code'], 201)
    const created = named(spans, 'contact.created', root)
    const run = named(spans, 'run', created)
    assert.equal(run.service, 'agx-worker')
    assert.equal(run.attributes['agx.workflow_id'], workflowId)
    named(spans, 'node set_fields', run)
    const call = named(spans, 'node api_request', run)
    const greeted = named(spans, 'contact.greeted', named(spans, 'node emit_event', run))
    for (const name of ['workflow.started', 'workflow.completed']) named(spans, name, run)
    const deliveries = [created, greeted].map((event) => named(spans, 'deliver', event))
    assert.equal(spans.length, 11)
    assert.deepEqual(
      spans.filter(({ failed }) => failed),
      [],
    )
    // Outgoing requests continue the span of the call.
    const sent = receiver.received.map(({ headers }) => headers.traceparent).sort()
    assert.deepEqual(sent, [call, ...deliveries].map(({ spanId }) => `00-${TRACE}-${spanId}-01`).sort())
  })

  it('lead from a run that the request queued to the request', async () => {
    const spec = 'name: Quick\nnodes:\n  text: {type: set_fields, config: {fields: {text: hello}}}\n'
    await request('POST', '/v1/workflows', { spec })
    const trace = TRACE.replace('4', '5')
    await request(
      'POST',
      '/v1/workflows/run-by-name',
      { name: 'Quick', confirm: true },
      { traceparent: `00-${trace}-${CALLER}-01` },
    )
    await until(async () => traced(trace).some(({ name }) => name === 'run'))
    await until(async () => traced(trace).some(({ name }) => name.startsWith('POST')))
    const spans = traced(trace)
    const root = named(spans, 'POST /v1/workflows/run-by-name')
    named(spans, 'node set_fields', named(spans, 'run', named(spans, 'queue run', root)))
  })

  it('have a root of their own without a traceparent, and none of a probe', async () => {
    const before = collector.spans.length
    await fetch(`${stack.apiUrl}/healthz`)
    await request('GET', '/v1/me')
    await until(async () => collector.spans.slice(before).some(({ name }) => name === 'GET /v1/me'))
    const [found] = collector.spans.slice(before).filter(({ name }) => name === 'GET /v1/me')
    assert.equal(found!.parentSpanId, undefined)
    assert.deepEqual(
      collector.spans.filter(({ name }) => name.includes('healthz')),
      [],
    )
  })

  it('contain no values and no URLs', () => {
    const all = collector.requests.map(({ body }) => body.toString()).join('\n')
    for (const text of [SECRET, 'path-with-token', stack.key, stack.owner.password])
      assert.equal(all.includes(text), false, text)
  })
})
