import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { VERSION } from '../db/process/build.ts'
import { countStuckRuns, listQueues } from '../db/queue/depth.ts'
import { startApi, type TestApi } from './support/api.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { set } from './support/nodes.ts'
import { startProcess, type TestProcess } from './support/process.ts'
import { parseMetrics, sumOf } from './support/prometheus.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { signIn } from './support/session.ts'
import { until } from './support/until.ts'
import { queueRun } from './support/worker.ts'

const GREET = 'name: Greet\nnodes:\n  hello: {type: set_fields, config: {fields: {text: hello}}}\n'
const TOKEN = 'a token of the scraper'

describe('/metrics', () => {
  let db: TestDatabase
  /** For what is set up. */
  let setUp: TestApi
  let api: TestProcess
  let worker: TestProcess
  let receiver: Receiver
  before(async () => {
    db = await createTestDatabase()
    setUp = await startApi(db, { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' })
    receiver = await startReceiver()
    const env = {
      SECRETS_KEY: setUp.secretsKey.toString('base64'),
      TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
      ALLOW_INSECURE_WEBHOOKS: 'true',
    }
    ;[api, worker] = await Promise.all([
      startProcess('api', { databaseUrl: db.url, env: { ...env, METRICS_TOKEN: TOKEN } }),
      startProcess('worker', { databaseUrl: db.url, env }),
    ])
  })
  after(async () => {
    for (const process of [api, worker]) process?.child.kill('SIGKILL')
    receiver?.close()
    await setUp?.close()
    await db?.drop()
  })

  const get = (process: TestProcess, headers: Record<string, string> = {}) =>
    fetch(`${process.url}/metrics`, { headers })
  const scrape = async (process: TestProcess) => {
    const response = await get(process, { authorization: `Bearer ${TOKEN}` })
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type')!, /^text\/plain; version=0\.0\.4/)
    return parseMetrics(await response.text())
  }

  it('counts a run, its delivery and its request', async () => {
    const app = await signIn(db, setUp)
    const webhook = { name: 'Receiver', url: receiver.url, events: ['workflow.completed'] }
    assert.equal((await app('POST', '/webhooks/outgoing', webhook)).status, 201)
    const { body } = await setUp.request('POST', '/v1/workflows', { body: { spec: GREET } })
    const [apiBefore, workerBefore] = await Promise.all([scrape(api), scrape(worker)])

    const run = await fetch(`${api.url}/v1/workflows/${body.workflow_id}/run`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${setUp.key}`,
        'content-type': 'application/json',
        prefer: 'wait=20',
      },
      body: '{"confirm": true}',
    })
    assert.equal(((await run.json()) as { status: string }).status, 'completed')
    await until(
      async () => (await db.system('deliveries').where({ status: 'succeeded' }).first()) ?? undefined,
      'the delivery',
    )
    const [apiAfter, workerAfter] = await Promise.all([scrape(api), scrape(worker)])

    const requests = { method: 'POST', route: '/v1/workflows/{workflow_id}/run', status: '200' }
    const moved = (name: string, labels: Record<string, string>) =>
      sumOf(workerAfter, name, labels) - sumOf(workerBefore, name, labels)
    assert.equal(sumOf(apiBefore, 'agx_http_request_duration_seconds_count', requests), 0)
    assert.equal(sumOf(apiAfter, 'agx_http_request_duration_seconds_count', requests), 1)
    assert.equal(moved('agx_runs_ended_total', { status: 'completed' }), 1)
    assert.equal(moved('agx_delivery_attempts_total', { outcome: 'succeeded' }), 1)
    assert.ok(moved('agx_activity_duration_seconds_count', { type: 'advance', outcome: 'completed' }) >= 1)
    // The SDK's own.
    assert.ok(moved('temporal_workflow_task_execution_latency_count', {}) >= 1)
    for (const samples of [apiAfter, workerAfter]) {
      assert.ok(sumOf(samples, 'agx_db_connections') >= 1)
      assert.equal(sumOf(samples, 'agx_log_lines_dropped_total'), 0)
      assert.ok(sumOf(samples, 'process_resident_memory_bytes') > 1e6)
      assert.ok(sumOf(samples, 'nodejs_eventloop_lag_p99_seconds') > 0)
      for (const key of samples.keys()) assert.doesNotMatch(key, new RegExp(setUp.organizationId))
    }
  })

  it('names the build', async () => {
    for (const process of [api, worker])
      assert.equal(sumOf(await scrape(process), 'agx_build_info', { version: VERSION }), 1)
  })

  it('counts failed verifications of incoming webhooks, and what they accept', async () => {
    const app = await signIn(db, setUp)
    const { body } = await app('POST', '/webhooks/incoming', { name: 'Form' })
    assert.ok(body.url, JSON.stringify(body))
    const path = new URL(body.url, api.url).pathname
    const send = (secret: string) =>
      fetch(api.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-webhook-secret': secret },
        body: '{"email": "ada@example.com"}',
      })
    assert.equal((await send('wrong')).status, 401)
    assert.equal((await send(body.secret)).status, 200)
    const samples = await scrape(api)
    for (const outcome of ['accepted', 'invalid_secret'])
      assert.equal(sumOf(samples, 'agx_incoming_requests_total', { outcome }), 1, outcome)
  })

  it('counts a webhook that is deactivated, and the mail about it that fails', async () => {
    receiver.behave(410)
    await setUp.request('POST', '/v1/workflows/run-by-name', { body: { name: 'Greet', confirm: true } })
    const samples = await until(async () => {
      const read = await scrape(worker)
      return sumOf(read, 'agx_mails_total', { outcome: 'failed' }) > 0 ? read : undefined
    }, 'the failed mail')
    assert.equal(sumOf(samples, 'agx_webhooks_deactivated_total'), 1)
    assert.ok(sumOf(samples, 'agx_mails_total', { mails: 'account mails', outcome: 'failed' }) >= 1)
  })

  it('has the time of the last sweep, and no stage that failed', async () => {
    const samples = await until(
      async () => {
        const read = await scrape(worker)
        return sumOf(read, 'agx_sweep_last_timestamp_seconds') > 0 ? read : undefined
      },
      'the first sweep',
      90,
    )
    const last = sumOf(samples, 'agx_sweep_last_timestamp_seconds')
    assert.ok(last >= sumOf(samples, 'process_start_time_seconds') && last <= Date.now() / 1_000)
    assert.equal(sumOf(samples, 'agx_sweep_failures_total'), 0)
    assert.equal(sumOf(samples, 'agx_queues_readable'), 1)
  })

  it('counts the runs that are stuck', async () => {
    const id = await queueRun(db, setUp.organizationId, { nodes: [set('a')] })
    await db.system('runs').where({ id }).update({ stuck_reason: 'The workflow task is at attempt 9.' })
    assert.equal(await countStuckRuns(db.system), 1)
    await db.system('runs').where({ id }).update({ status: 'cancelled', ended_at: new Date() })
    assert.equal(await countStuckRuns(db.system), 0)
  })

  it('measures the queues', async () => {
    // So that no relay claims the next run.
    const { code } = await worker.stop()
    assert.equal(code, 0)
    await setUp.request('POST', '/v1/workflows/run-by-name', { body: { name: 'Greet', confirm: true } })
    const created = Date.now() - 60_000
    await db
      .system('runs')
      .where({ status: 'queued' })
      .update({ created_at: new Date(created), updated_at: new Date(created) })
    const queues = await listQueues(db.system)
    const queued = queues.find(({ queue, status }) => queue === 'runs' && status === 'queued')!
    assert.equal(queued.count, 1)
    const lag = queued.lag_seconds!
    assert.ok(lag >= 59 && lag <= (Date.now() - created) / 1_000 + 1, `${lag}`)
    const deliveries = queues.find(({ queue, status }) => queue === 'deliveries' && status === 'queued')!
    assert.deepEqual([deliveries.count, deliveries.lag_seconds], [0, null])
  })

  it('needs the token, or without one a request from this machine that no proxy passed on', async () => {
    assert.equal((await get(api)).status, 401)
    assert.equal((await get(api, { authorization: 'Bearer wrong' })).status, 401)
    assert.equal((await fetch(`${setUp.url}/metrics`)).status, 200)
    assert.equal(
      (await fetch(`${setUp.url}/metrics`, { headers: { 'x-forwarded-for': '203.0.113.9' } })).status,
      401,
    )
  })
})
