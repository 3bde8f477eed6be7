import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { pauseRun } from '../../db/runs/moves/pauses.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import type { PartialDefinition } from '../support/definition.ts'
import { edge } from '../support/nodes.ts'
import { startProcess } from '../support/process.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** A worker process, killed with SIGKILL while it makes a call that has an undo, or that of the undo. */
describe('a worker that is killed', () => {
  let db: TestDatabase
  let organizationId: string
  let server: Server
  const calls: { path: string; key: string }[] = []
  const children: ChildProcess[] = []
  const taskQueue = `test-${randomUUID()}`
  /** The paths of calls without an answer. */
  let hanging = new Set<string>()
  let arrived = () => {}

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    server = createServer((request, response) => {
      const path = request.url!.slice(1)
      calls.push({ path, key: String(request.headers['idempotency-key']) })
      if (hanging.has(path)) return arrived()
      response.writeHead(path === 'last' ? 400 : 200, { 'content-type': 'application/json' }).end('{}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    calls.length = 0
  })
  after(async () => {
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

  const post = (path: string) => ({
    type: 'api_request',
    config: { method: 'POST', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${path}` },
    retry: { max_attempts: 1 },
  })
  /** Kills the worker when it makes this call of the run. @returns the run's id. */
  async function killIn(path: string, definition: PartialDefinition): Promise<string> {
    hanging = new Set([path])
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const first = await startWorker()
    const id = await queueRun(db, organizationId, definition)
    await came
    first.kill('SIGKILL')
    await once(first, 'exit')
    hanging = new Set()
    return id
  }

  it('in the middle of an undo is replaced by another, which goes on: what is done stays, the call keeps its key', async () => {
    const noted = { type: 'emit_event', config: { event: 'order.undone' } }
    const id = await killIn('undo-first', {
      nodes: [
        { id: 'first', ...post('first'), undo: post('undo-first') },
        { id: 'second', ...post('second'), undo: [post('undo-second'), noted] },
        { id: 'last', ...post('last') },
      ],
      edges: [edge('first', 'second'), edge('second', 'last')],
      settings: { finally: post('finally') },
    })
    await startWorker()
    const run = await untilRun(db, id, undefined, 90)
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

  it('in a call with an undo, whose run is paused and then cancelled, may have made it: it is made again and undone', async () => {
    const id = await killIn('charge', { nodes: [{ id: 'charge', ...post('charge'), undo: post('refund') }] })
    await db.tenant(organizationId, testActor, (tx) => pauseRun(tx, id))
    await startWorker()
    await untilRun(db, id, ['paused'], 90)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id, undefined, 90)).status, 'cancelled')
    assert.deepEqual(
      calls.map(({ key }) => key),
      ['charge', 'charge', 'charge_undo'].map((name) => `${id}:${name}`),
    )
  })
})
