import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { activate } from '../../db/workflows/workflows.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import type { Answer } from '../support/answer.ts'
import { testActor } from '../support/database.ts'
import { type IncomingTest, startIncoming, type TestWebhook } from '../support/incoming.ts'
import { startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { nodeStatuses, saveWorkflow, startWorker, type TestWorker, untilRun } from '../support/worker.ts'

const KEY = Buffer.alloc(32).toString('base64')
const respond = (config: object, id = 'answer'): NodeSpec => ({
  id,
  type: 'respond',
  config: config as NodeSpec['config'],
})

describe('a workflow that answers the sender of an incoming webhook', () => {
  let test: IncomingTest
  let worker: TestWorker | undefined
  /** The first attempts of the segments of these runs commit, and their results are lost. */
  const losing = new Set<string>()
  before(async () => {
    test = await startIncoming({ SECRETS_KEY: KEY })
  })
  after(async () => {
    await worker?.stop()
    await test?.close()
  })

  const start = async () => {
    worker ??= await startWorker(test.db, {
      secretsKey: test.api.secretsKey,
      advance: (advance) => async (input) => {
        const answer = await advance(input)
        if (losing.delete(input.run_id)) throw new Error('the result is lost')
        return answer
      },
    })
  }
  /** An active workflow whose nodes run one after the other, and a plain trigger that selects it. */
  async function webhookOf(nodes: NodeSpec[], values: object = {}): Promise<TestWebhook> {
    const edges = nodes
      .slice(1)
      .map(({ id }, index) => ({ from: nodes[index]!.id, handle: 'success', to: id }))
    const name = `Answer ${randomUUID()}`
    const { id } = await saveWorkflow(test.db, test.api.organizationId, {
      name,
      trigger: { type: 'webhook' },
      nodes,
      edges,
    })
    await test.db.tenant(test.api.organizationId, testActor, (tx) => activate(tx, id))
    return test.createWebhook({
      target_entity: 'none',
      workflow_id: id,
      response_wait: 10,
      rate_limit: 1_000,
      ...values,
    })
  }
  const send = (webhook: TestWebhook, body: object, id: string = randomUUID()) =>
    test.send(webhook, body, { 'webhook-id': id })
  /** Repeats a delivery until its workflow has answered it, as a sender does. */
  async function answered(webhook: TestWebhook, body: object, id: string = randomUUID()): Promise<Answer> {
    let answer: Answer | undefined
    await until(async () => {
      answer = await send(webhook, body, id)
      return answer.headers.has('content-security-policy')
    })
    return answer!
  }
  const runsOf = ({ id }: TestWebhook) =>
    test.db.system('runs').whereRaw("trigger -> 'webhook' ->> 'id' = ?", [id]).orderBy('id')

  it('is replaced by the usual one for a sender above 100 that wait, with a warning in its answer and its log row', async () => {
    const webhook = await webhookOf([respond({ json: { text: 'hello' } })])
    const answers = await Promise.all(Array.from({ length: 102 }, (_, n) => send(webhook, { n })))
    const warned = answers.filter(({ body }) => body.warnings)
    assert.ok(warned.length >= 2 && answers.every(({ status }) => status === 200), String(warned.length))
    for (const { body } of warned)
      assert.match(body.warnings[0], /^100 requests of the organization were waiting for a workflow/)
    const logged = await test.db.system('incoming_logs').where({ webhook_id: webhook.id })
    assert.equal(logged.length, answers.length)
    const rows = logged.filter(({ warnings }) => warnings.length > 0).map(({ warnings }) => warnings)
    assert.deepEqual(
      rows,
      warned.map(({ body }) => body.warnings),
    )
    await test.db.system('runs').delete()
  })

  it('gives the usual answer if the time is over, and its own one to the repetition of the sender', async () => {
    const webhook = await webhookOf([respond({ json: { text: 'late' } })], { response_wait: 1 })
    const first = await send(webhook, {}, 'one')
    assert.deepEqual([first.status, first.body.message], [200, 'started a workflow'])
    await start()
    const { status, body } = await answered(webhook, {}, 'one')
    assert.deepEqual([status, body], [200, { text: 'late' }])
    assert.equal((await runsOf(webhook)).length, 1)
  })

  it('sends its status, allowed headers and body, which no browser runs', async () => {
    await start()
    const webhook = await webhookOf([
      respond({
        status: 201,
        headers: { 'X-Slack-No-Retry': '1', 'cache-control': 'max-age=5' },
        json: { text: 'Hello {{ trigger.payload.who }}', n: '{{ trigger.payload.n | plus: 1 }}' },
      }),
    ])
    const { status, headers, body } = await answered(webhook, { who: 'Ada', n: 1 })
    assert.deepEqual([status, body], [201, { text: 'Hello Ada', n: 2 }])
    assert.deepEqual(
      ['content-type', 'x-slack-no-retry', 'cache-control', 'x-content-type-options', 'set-cookie'].map(
        (name) => headers.get(name),
      ),
      ['application/json; charset=utf-8', '1', 'max-age=5', 'nosniff', null],
    )
    assert.match(headers.get('content-security-policy')!, /sandbox/)
    assert.ok(headers.has('x-ratelimit-remaining'))
    const twiml = '<Response><Message>{{ trigger.payload.text | escape }}</Message></Response>'
    const xml = await answered(await webhookOf([respond({ xml: twiml })]), { text: 'a < b' })
    assert.deepEqual(
      [xml.headers.get('content-type'), xml.body],
      ['text/xml; charset=utf-8', '<Response><Message>a &lt; b</Message></Response>'],
    )
    const text = await answered(await webhookOf([respond({ text: 'no', status: 422 })]), {})
    assert.deepEqual(
      [text.status, text.headers.get('content-type'), text.body],
      [422, 'text/plain; charset=utf-8', 'no'],
    )
    const empty = await answered(await webhookOf([respond({ status: 204 })]), {})
    assert.deepEqual([empty.status, empty.body], [204, ''])
  })

  it('gives the same answer to each repetition of a delivery, with one run', async () => {
    await start()
    const webhook = await webhookOf([respond({ json: { run: '{{ run.id }}' } })])
    const first = await answered(webhook, { a: 1 }, 'same')
    const again = await Promise.all([1, 2, 3].map(() => send(webhook, { a: 1 }, 'same')))
    const [run, ...more] = await runsOf(webhook)
    assert.equal(more.length, 0)
    assert.deepEqual(
      again.map(({ status, body }) => [status, body]),
      again.map(() => [200, { run: run.id }]),
    )
    assert.deepEqual(first.body, { run: run.id })
  })

  it('gives the usual answer if it ends without one, also to repetitions', async () => {
    await start()
    const webhook = await webhookOf([{ id: 'keep', type: 'set_fields', config: { fields: { a: 1 } } }])
    const first = await send(webhook, {}, 'none')
    assert.equal(first.body.message, 'started a workflow')
    const [run] = await runsOf(webhook)
    await untilRun(test.db, run.id)
    assert.equal((await send(webhook, {}, 'none')).body.message, 'already received')
  })

  it('counts the first answer of a run; the node of a second one fails', async () => {
    await start()
    const webhook = await webhookOf([respond({ text: 'first' }), respond({ text: 'second' }, 'again')])
    assert.equal((await answered(webhook, {})).body, 'first')
    const [{ id }] = await runsOf(webhook)
    const run = await untilRun(test.db, id)
    assert.deepEqual([run.status, run.error?.code], ['failed', 'already_responded'])
    assert.deepEqual(await nodeStatuses(test.db, id), { answer: 'completed', again: 'failed' })
  })

  it('is written once if the result of its segment is lost', async () => {
    await worker?.stop()
    worker = undefined
    const webhook = await webhookOf(
      [respond({ text: 'kept' }), { id: 'keep', type: 'emit_event', config: { event: 'answer.kept' } }],
      { response_wait: 1 },
    )
    await send(webhook, {}, 'lost')
    const [{ id }] = await runsOf(webhook)
    losing.add(id)
    await start()
    assert.equal((await answered(webhook, {}, 'lost')).body, 'kept')
    assert.equal((await untilRun(test.db, id)).status, 'completed')
    assert.equal(losing.size, 0)
    assert.equal((await test.db.system('incoming_responses').where({ run_id: id })).length, 1)
    assert.equal((await test.db.system('events').where({ name: 'answer.kept' })).length, 1)
  })

  it('answers the repetition after a kill -9 of the API that the sender was waiting for', async () => {
    await worker?.stop()
    worker = undefined
    const webhook = await webhookOf([respond({ text: 'survived' })])
    const api = await startProcess('api', { databaseUrl: test.db.url, env: { SECRETS_KEY: KEY } })
    const headers = {
      'Content-Type': 'application/json',
      'X-Webhook-Secret': webhook.secret,
      'webhook-id': 'killed',
    }
    const sent = fetch(`${api.url}/webhooks/incoming/${webhook.id}`, { method: 'POST', body: '{}', headers })
    const outcome = sent.then(
      () => 'answered',
      () => 'cut',
    )
    await until(async () => (await runsOf(webhook)).length === 1)
    await api.stop('SIGKILL')
    assert.equal(await outcome, 'cut')
    await start()
    assert.equal((await answered(webhook, {}, 'killed')).body, 'survived')
    assert.equal((await runsOf(webhook)).length, 1)
  })

  it('is the same after a kill -9 of the worker, and the next one ends the run', async () => {
    await worker?.stop()
    worker = undefined
    const webhook = await webhookOf([
      respond({ text: 'by {{ run.id }}' }),
      { id: 'pause', type: 'wait_for_signal', config: { name: 'go' } },
    ])
    const env = { SECRETS_KEY: KEY, TEMPORAL_TASK_QUEUE: `killed-${randomUUID()}` }
    const first = await startProcess('worker', { databaseUrl: test.db.url, env })
    const { body } = await answered(webhook, {}, 'worker')
    await first.stop('SIGKILL')
    const [{ id }] = await runsOf(webhook)
    const second = await startProcess('worker', { databaseUrl: test.db.url, env })
    await test.api.request('POST', `/v1/runs/${id}/signal`, { body: { name: 'go' } })
    assert.equal((await untilRun(test.db, id)).status, 'completed')
    assert.deepEqual([body, (await send(webhook, {}, 'worker')).body], [`by ${id}`, `by ${id}`])
    assert.equal((await test.db.system('incoming_responses').where({ run_id: id })).length, 1)
    await second.stop()
  })

  it('is stored by the retry of a run too, and by a test of the node, without a sender', async () => {
    await start()
    const webhook = await webhookOf([
      respond({ text: 'x' }),
      { id: 'fail', type: 'parse_json', config: { text: '{' } },
    ])
    assert.equal((await answered(webhook, {})).body, 'x')
    const [{ id }] = await runsOf(webhook)
    assert.equal((await untilRun(test.db, id)).error?.code, 'invalid_json')
    const path = `/v1/runs/${id}/retry`
    const { body } = await test.api.request('POST', path, { body: { from_start: true, confirm: true } })
    const retried = await untilRun(test.db, body.run_id)
    assert.equal(retried.error?.code, 'invalid_json')
    const tested = await test.api.request('POST', '/v1/workflows/nodes/test', {
      body: { node_type: 'respond', config: { json: { a: 1 } }, confirm: true },
    })
    assert.deepEqual(
      [tested.body.status, tested.body.output],
      ['completed', { status: 200, bytes: 7 }],
      JSON.stringify(tested.body),
    )
  })

  it('may come from any of the workflows that a request starts', async () => {
    await start()
    const silent = await webhookOf([{ id: 'keep', type: 'set_fields', config: { fields: { a: 1 } } }])
    const loud = await webhookOf([respond({ text: 'from a listener' })])
    const workflowOf = async ({ id }: TestWebhook) =>
      (await test.app('GET', `/webhooks/incoming/${id}`)).body.workflow_id as string
    const both = await test.createWebhook({
      target_entity: 'none',
      response_wait: 10,
      workflow_id: await workflowOf(silent),
      listeners: [{ workflow_id: await workflowOf(loud) }],
    })
    assert.equal((await answered(both, {})).body, 'from a listener')
  })
})
