import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { edge } from '../support/nodes.ts'
import { startProcess } from '../support/process.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** A worker process, killed with SIGKILL while it makes the call of an undo. */
describe('a worker that is killed in the middle of an undo', function () {
  this.timeout(240_000)
  let db: TestDatabase
  let server: Server
  const calls: { path: string; key: string }[] = []
  const children: ChildProcess[] = []
  const taskQueue = `test-${randomUUID()}`
  let hang = true
  let arrived = () => {}

  before(async () => {
    db = await createTestDatabase()
    server = createServer((request, response) => {
      const path = request.url!.slice(1)
      calls.push({ path, key: String(request.headers['idempotency-key']) })
      if (path === 'undo-first' && hang) return arrived()
      response.writeHead(path === 'last' ? 400 : 200, { 'content-type': 'application/json' }).end('{}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  after(async () => {
    for (const child of children) child.kill('SIGKILL')
    server?.closeAllConnections()
    server?.close()
    await db?.drop()
  })

  async function startWorker(): Promise<ChildProcess> {
    const env = { TEMPORAL_TASK_QUEUE: taskQueue }
    const { child } = await startProcess('worker', { databaseUrl: db.url, env })
    children.push(child)
    return child
  }

  it('is replaced by another, which goes on: what is done stays, the call keeps its key', async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const post = (path: string) => ({
      type: 'api_request',
      config: { method: 'POST', url: `${url}/${path}` },
      retry: { max_attempts: 1 },
    })
    const noted = { type: 'emit_event', config: { event: 'order.undone' } }
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const first = await startWorker()
    const id = await queueRun(db, await createOrganization(db), {
      nodes: [
        { id: 'first', ...post('first'), undo: post('undo-first') },
        { id: 'second', ...post('second'), undo: [post('undo-second'), noted] },
        { id: 'last', ...post('last') },
      ],
      edges: [edge('first', 'second'), edge('second', 'last')],
      settings: { finally: post('finally') },
    })
    await came
    first.kill('SIGKILL')
    await once(first, 'exit')
    hang = false
    await startWorker()
    const run = await untilRun(db, id, undefined, 90_000)
    assert.deepEqual([run.status, run.error?.node_id], ['failed', 'last'])
    const names = ['first', 'second', 'last', 'second_undo', 'first_undo', 'first_undo', 'finally']
    assert.deepEqual(
      calls.map(({ key }) => key),
      names.map((name) => `${id}:${name}`),
    )
    assert.equal((await db.system('events').where({ name: 'order.undone' })).length, 1)
    assert.equal(
      (await db.system('run_nodes').where({ run_id: id, node_id: 'first_undo' }).first()).attempt,
      1,
    )
  })
})
