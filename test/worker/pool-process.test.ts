import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { setPools } from '../../db/access/pools.ts'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** Two worker processes, of which only the one in the pool may reach the server. */
describe('a worker process in a pool', () => {
  let db: TestDatabase
  let organizationId: string
  let server: Server
  let url: string
  let hang = false
  const calls: (string | undefined)[] = []
  let arrived = () => {}
  const env = { TEMPORAL_TASK_QUEUE: `test-${randomUUID()}` }
  const processes: TestProcess[] = []
  const start = async (more: Record<string, string>) => {
    const started = await startProcess('worker', { databaseUrl: db.url, env: { ...env, ...more } })
    processes.push(started)
    return started
  }
  const post = (pool?: string) =>
    queueRun(db, organizationId, {
      nodes: [
        {
          id: 'post',
          type: 'api_request',
          config: { method: 'POST', url },
          retry: { max_attempts: 1 },
          ...(pool === undefined ? {} : { pool }),
        },
      ],
      outputs: { ok: '{{ nodes.post.output.body.ok }}' },
    })
  /** The sum of the samples that begin with `name`, a metric with labels; undefined without one. */
  const metric = async ({ url }: TestProcess, name: string) => {
    const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n')
    const found = lines.filter((line) => line.startsWith(name)).map((line) => Number(line.split(' ').at(-1)))
    return found.length === 0 ? undefined : found.reduce((sum, value) => sum + value, 0)
  }

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    await setPools(db.system, organizationId, ['dmz'])
    server = createServer((request, response) => {
      calls.push(request.headers['idempotency-key'] as string | undefined)
      arrived()
      if (!hang) response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  after(async () => {
    for (const { child } of processes) child.kill('SIGKILL')
    server?.closeAllConnections()
    server?.close()
    await db?.drop()
  })

  it('makes the calls that others cannot, repeats them after a kill -9, and runs nothing else', async () => {
    const outside = await start({ EGRESS_ALLOW: '' })
    const waiting = await post('dmz')
    await until(async () => (await metric(outside, 'agx_pool_backlog{pool="dmz"}')) === 1)
    assert.equal(await metric(outside, 'agx_pool_workers{pool="dmz"}'), 0)

    const first = await start({ WORKER_POOL: 'dmz' })
    assert.equal((await untilRun(db, waiting)).status, 'completed')
    assert.deepEqual((await untilRun(db, await post())).error?.code, 'egress_refused')
    assert.equal(await metric(first, 'agx_queue_rows'), undefined)
    assert.ok((await metric(first, 'agx_activity_duration_seconds_count{type="api_request"'))! > 0)

    hang = true
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const killed = await post('dmz')
    await came
    first.child.kill('SIGKILL')
    await once(first.child, 'exit')
    hang = false
    await start({ WORKER_POOL: 'dmz' })
    const run = await untilRun(db, killed)
    assert.deepEqual([run.status, run.outputs], ['completed', { ok: true }])
    assert.deepEqual(calls, [`${waiting}:post`, `${killed}:post`, `${killed}:post`])
    assert.equal((await db.system('run_nodes').where({ run_id: killed }).first()).attempt, 1)
  })

  it('starts no run while it is alone', async () => {
    const [outside, , inside] = processes
    await outside!.stop()
    const id = await post('dmz')
    await sleep(1_000)
    assert.equal((await db.system('runs').where({ id }).first()).status, 'queued')
    assert.equal((await inside!.stop()).code, 0)
    const [{ seen_at }] = await db.system('pool_workers').orderBy('seen_at', 'desc')
    assert.ok(Date.now() - seen_at.getTime() >= 10_000, 'the worker did not report its end')
  })

  it('refuses a name that no pool can have', async () => {
    await assert.rejects(start({ WORKER_POOL: 'default' }), /WORKER_POOL must not be default/)
    await assert.rejects(start({ WORKER_POOL: 'My DMZ' }), /WORKER_POOL must be lower case letters/)
  })
})
