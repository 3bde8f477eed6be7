import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { createKey, startApi } from '../support/api.ts'
import { untilBlocked } from '../support/blocked.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'

const WORKFLOW = `name: Never started
nodes:
  pause: {type: delay, config: {for: 1h}}
`

describe('an api process that gets SIGTERM', () => {
  let db: TestDatabase
  let key: string
  let api: TestProcess
  /** An agent that keeps its connections open. */
  let agent: Agent
  before(async () => {
    db = await createTestDatabase()
    key = (await createKey(db, await createOrganization(db))).key
  })
  afterEach(() => {
    agent?.destroy()
    api?.child.kill('SIGKILL')
  })
  after(() => db.drop())

  const start = async (env: Record<string, string> = {}) => {
    agent = new Agent({ keepAlive: true })
    api = await startProcess('api', { databaseUrl: db.url, env })
  }

  async function call(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: object } = {},
  ) {
    const sent = request(api.url + path, {
      method,
      agent,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    })
    sent.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of response) text += chunk
    return { status: response.statusCode, headers: response.headers, body: JSON.parse(text) }
  }

  it('answers the requests that wait for a run, closes idle connections and ends', async () => {
    await start()
    const { body: workflow } = await call('POST', '/v1/workflows', { body: { spec: WORKFLOW } })
    const run = () =>
      call('POST', `/v1/workflows/${workflow.workflow_id}/run`, {
        body: { confirm: true },
        headers: { prefer: 'wait=30' },
      })
    const waiting = Array.from({ length: 10 }, run)
    // Three more kinds of connections: idle after a request, idle before one, and with half a request.
    await call('GET', '/v1/me')
    const port = Number(new URL(api.url).port)
    const [fresh, half] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
    for (const socket of [fresh, half]) socket.on('error', () => {})
    await once(half, 'connect')
    half.write('GET /healthz HTTP/1.1\r\nHost: x\r\n')
    await until(async () => (await db.system('runs').where({ status: 'queued' })).length === 10)

    const stopped = api.stop()
    await until(() =>
      fetch(`${api.url}/healthz`).then(
        () => false,
        () => true,
      ),
    )
    half.write('\r\n')
    const [late] = await once(half, 'data')
    assert.match(String(late), /^HTTP\/1.1 200 [\s\S]*\r\nConnection: close\r\n/i)
    for (const { status, headers, body } of await Promise.all(waiting)) {
      assert.deepEqual([status, body.status], [200, 'queued'])
      assert.equal(headers.connection, 'close')
    }
    // It does not wait for the runs, which are still queued in the answers.
    const { code } = await stopped
    assert.equal(code, 0, api.output())
  })

  it('refuses readiness first, and keeps serving for SHUTDOWN_DELAY', async () => {
    await start({ SHUTDOWN_DELAY: '3' })
    await call('GET', '/v1/me')
    const stopped = api.stop()
    const readiness = await until(async () => {
      const answer = await call('GET', '/readyz')
      return answer.status === 503 && answer
    })
    assert.equal(readiness.body.status, 'stopping')
    assert.equal((await call('GET', '/healthz')).status, 200)
    const me = await call('GET', '/v1/me')
    assert.deepEqual([me.status, me.headers.connection], [200, 'close'])
    const { code, milliseconds } = await stopped
    assert.equal(code, 0)
    assert.ok(milliseconds > 3_000, `it took ${milliseconds} ms`)
  })

  it('loses no request of clients that send all the time', async () => {
    await start({ SHUTDOWN_DELAY: '1' })
    const created: string[] = []
    const failed: (string | undefined)[] = []
    const client = async () => {
      for (;;) {
        try {
          const { status, body } = await call('POST', '/v1/objects/notes', { body: { body: 'sent' } })
          assert.equal(status, 201)
          created.push(body.id)
        } catch (error) {
          failed.push((error as NodeJS.ErrnoException).code)
          return
        }
      }
    }
    const clients = Array.from({ length: 8 }, client)
    await until(() => created.length >= 8 || failed.length > 0)
    const before = created.length
    assert.equal((await api.stop()).code, 0)
    await Promise.all(clients)
    assert.ok(created.length > before, `${before} of ${created.length}`)
    // Only new connections fail: a closed port refuses them, or resets those that it had not yet accepted.
    for (const code of failed) assert.match(code!, /^ECONNRE(?:FUSED|SET)$/)
    // Failed requests had no effect: each created note was acknowledged.
    const rows = await db.system('notes').where({ body: 'sent' }).select('id')
    assert.deepEqual(rows.map(({ id }) => id).sort(), created.sort())
  })

  it('leaves an Idempotency-Key in progress for a few seconds only when it is killed', async () => {
    await start()
    const other = await startApi(db)
    const { body: workflow } = await call('POST', '/v1/workflows', { body: { spec: WORKFLOW } })
    const path = `/v1/workflows/${workflow.workflow_id}/run`
    const body = { confirm: true }
    const headers = { 'idempotency-key': 'killed', prefer: 'wait=30' }
    const lost = call('POST', path, { body, headers }).catch((error: NodeJS.ErrnoException) => error.code)
    // The first lease and its renewal.
    const leases = new Set<number>()
    while (leases.size < 2) {
      const row = await db.system('idempotency_keys').where({ key: 'killed' }).first()
      if (row) leases.add(row.locked_until.getTime())
      await pause(50)
    }
    await api.stop('SIGKILL')
    assert.equal(await lost, 'ECONNRESET')
    const retry = () => other.request('POST', path, { key, body, headers })
    const refused = await retry()
    assert.deepEqual([refused.status, refused.body.error?.type], [409, 'idempotency_in_progress'])
    assert.equal(refused.headers.get('retry-after'), '1')
    const answer = await until(async () => {
      const again = await retry()
      return again.status !== 409 && again
    })
    assert.deepEqual([answer.status, answer.body.status], [200, 'queued'])
    assert.equal(answer.headers.get('idempotency-replayed'), 'true')
    assert.equal((await db.system('runs').where({ workflow_id: workflow.workflow_id })).length, 1)
    await other.close()
  })

  it('cuts off what is not answered within SHUTDOWN_GRACE', async () => {
    await start({ SHUTDOWN_GRACE: '1' })
    const locker = db.system.transaction(async (trx) => {
      await trx.raw('reset role; lock table contacts in access exclusive mode')
      const listed = call('GET', '/v1/objects/contacts').catch((error: NodeJS.ErrnoException) => error.code)
      await untilBlocked(db)
      const { milliseconds } = await api.stop()
      assert.equal(await listed, 'ECONNRESET')
      return milliseconds
    })
    const milliseconds = await locker
    assert.ok(milliseconds > 900, `it took ${milliseconds} ms`)
    assert.match(api.output(), /requests were aborted/)
  })
})
