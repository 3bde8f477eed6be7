import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { VERSION } from '../db/process/build.ts'
import { startApi, type TestApi } from './support/api.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { importsOf } from './support/imports.ts'
import { documentedLogFields } from './support/log-fields.ts'
import { startProcess, type TestProcess } from './support/process.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { signIn } from './support/session.ts'
import { until } from './support/until.ts'

const GREET = 'name: Greet\nnodes:\n  hello: {type: set_fields, config: {fields: {text: hello}}}\n'
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const COMMIT = '0123456789abcdef0123456789abcdef01234567'

describe('the log of ended work', () => {
  let db: TestDatabase
  let api: TestApi
  let processes: TestProcess[] = []
  let worker: TestProcess
  let receiver: Receiver
  before(async () => {
    db = await createTestDatabase()
    api = await startApi(db, { ALLOW_INSECURE_WEBHOOKS: 'true', EGRESS_ALLOW: '127.0.0.0/8' })
    receiver = await startReceiver()
    const env = {
      SECRETS_KEY: api.secretsKey.toString('base64'),
      TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
      ALLOW_INSECURE_WEBHOOKS: 'true',
      BUILD_COMMIT: COMMIT,
    }
    processes = await Promise.all([
      startProcess('worker', { databaseUrl: db.url, env }),
      startProcess('api', { databaseUrl: db.url, env }),
    ])
    worker = processes[0]!
  })
  after(async () => {
    for (const { child } of processes) child.kill('SIGKILL')
    receiver?.close()
    await api?.close()
    await db?.drop()
  })

  const linesOf = (process: TestProcess): Record<string, unknown>[] =>
    process
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line))
  const line = (msg: string) =>
    until(() => linesOf(worker).find((one) => one.msg === msg), `the line "${msg}"`)
  const assertProcess = (one: Record<string, unknown>, { child }: TestProcess) =>
    assert.deepEqual(
      [one.host, one.pid, one.version, one.commit],
      [hostname(), child.pid, VERSION, COMMIT],
      JSON.stringify(one),
    )

  it('has one line at the end of a run and of its delivery, with ids, trace and duration', async () => {
    const app = await signIn(db, api)
    const { body: webhook } = await app('POST', '/webhooks/outgoing', {
      name: 'Receiver',
      url: receiver.url,
      events: ['workflow.completed'],
    })
    const { body: workflow } = await api.request('POST', '/v1/workflows', { body: { spec: GREET } })
    const { body: run } = await api.request('POST', `/v1/workflows/${workflow.workflow_id}/run`, {
      body: { confirm: true },
      headers: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` },
    })

    const ended = await line('run ended')
    const { ms } = ended
    assert.ok(typeof ms === 'number' && ms > 0)
    const of = (one: Record<string, unknown>, names: string[]) =>
      Object.fromEntries(names.map((name) => [name, one[name]]))
    assert.deepEqual(
      of(ended, ['level', 'status', 'organization_id', 'run_id', 'workflow_id', 'trace_id', 'trigger']),
      {
        level: 30,
        status: 'completed',
        organization_id: api.organizationId,
        run_id: run.run_id,
        workflow_id: workflow.workflow_id,
        trace_id: TRACE,
        trigger: 'api',
      },
    )
    assertProcess(ended, worker)

    const delivered = await line('delivery ended')
    const row = await db.system('deliveries').where({ webhook_id: webhook.id }).first()
    assert.deepEqual(
      of(delivered, [
        'level',
        'status',
        'organization_id',
        'delivery_id',
        'webhook_id',
        'event_id',
        'attempts',
        'trace_id',
      ]),
      {
        level: 30,
        status: 'succeeded',
        organization_id: api.organizationId,
        delivery_id: row.id,
        webhook_id: webhook.id,
        event_id: row.event_id,
        attempts: 1,
        trace_id: TRACE,
      },
    )
    assert.ok(typeof delivered.ms === 'number')
    for (const msg of ['run ended', 'delivery ended'])
      assert.equal(linesOf(worker).filter((one) => one.msg === msg).length, 1, msg)
  })

  it('has one line at the end of an import', async () => {
    const imports = importsOf(api)
    const { body } = await imports.prepare({ entity: 'contacts', mode: 'create' }, 'email\nada@example.com\n')
    assert.equal((await imports.start(body.id)).status, 200)
    const ended = await line('import ended')
    assert.deepEqual(
      [ended.level, ended.status, ended.organization_id, ended.import_id, ended.rows_created],
      [30, 'completed', api.organizationId, body.id, 1],
    )
    assert.ok(typeof ended.ms === 'number')
  })

  it('has no line of probes, and names version and commit in /healthz', async () => {
    for (const process of processes) {
      const answer = await fetch(`${process.url}/healthz`)
      assert.deepEqual(await answer.json(), { status: 'alive', version: VERSION, commit: COMMIT })
      await fetch(`${process.url}/readyz`)
      await fetch(`${process.url}/metrics`)
      await fetch(`${process.url}/v1/me`)
      const lines = linesOf(process)
      assertProcess(lines[0]!, process)
      assert.deepEqual(
        lines.filter(({ route }) => /healthz|readyz|metrics/.test(String(route))),
        [],
      )
    }
    await until(() => linesOf(processes[1]!).find(({ status }) => status === 401), 'the line of a request')
  })

  it('has no field that its reference does not name', () => {
    const named = documentedLogFields()
    const used = new Set(
      processes
        .flatMap(linesOf)
        .filter(({ sdkComponent }) => sdkComponent === undefined)
        .flatMap((one) => Object.keys(one)),
    )
    assert.deepEqual([...used].filter((name) => !named.has(name)).sort(), [])
  })
})
