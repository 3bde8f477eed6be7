import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { createOrganization, createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startProcess } from '../support/process.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/** Real worker processes, killed with SIGKILL during their work. */
describe('a killed worker', () => {
  let db: TestDatabase
  let organizationId: string
  let server: Server
  let url: string
  let calls: (string | undefined)[] = []
  let arrived = () => {}
  let hang = true
  const taskQueue = `test-${randomUUID()}`
  const children: ChildProcess[] = []

  before(async function () {
    this.timeout(60_000)
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    server = createServer((request, response) => {
      calls.push(request.headers['idempotency-key'] as string | undefined)
      arrived()
      if (!hang) response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  beforeEach(() => {
    calls = []
    hang = true
  })
  after(async function () {
    this.timeout(30_000)
    for (const child of children) child.kill('SIGKILL')
    server?.closeAllConnections()
    server?.close()
    await db?.drop()
  })

  async function startWorker(): Promise<ChildProcess> {
    const { child } = await startProcess('worker', {
      databaseUrl: db.url,
      env: { TEMPORAL_TASK_QUEUE: taskQueue },
    })
    children.push(child)
    return child
  }

  async function kill(child: ChildProcess): Promise<void> {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  it('in a segment: another worker repeats the segment, and its effects happen once', async function () {
    this.timeout(90_000)
    const first = await startWorker()
    // The segment blocks on this lock after the effect of its first node, before it commits.
    const blocker = new pg.Client({ connectionString: db.url })
    await blocker.connect()
    await blocker.query('begin')
    await blocker.query('lock table run_segments in access exclusive mode')
    const id = await queueRun(db, organizationId, {
      nodes: [
        {
          id: 'save',
          type: 'crm_manager',
          config: { operation: 'create', entity: 'contacts', fields: { email: 'lost@example.com' } },
        },
        { id: 'paid', type: 'emit_event', config: { event: 'invoice.paid', data: { run: '{{ run.id }}' } } },
      ],
      edges: [{ from: 'save', handle: 'success', to: 'paid' }],
    })
    // On another connection, because a transaction keeps its first snapshot of pg_stat_activity.
    const observer = new pg.Client({ connectionString: db.url })
    await observer.connect()
    for (const until = Date.now() + 20_000; ; ) {
      const { rowCount } = await observer.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      )
      if (rowCount || Date.now() > until) break
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await observer.end()
    await kill(first)
    await blocker.query('rollback')
    await blocker.end()
    assert.equal((await db.system('contacts')).length, 0)

    await startWorker()
    const run = await untilRun(db, id, undefined, 60_000)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.equal((await db.system('contacts').where({ email: 'lost@example.com' })).length, 1)
    const raised = await db.system('events').orderBy('name')
    assert.deepEqual(
      raised.map((event) => event.name),
      ['contact.created', 'invoice.paid', 'workflow.completed', 'workflow.started'],
    )
  })

  it('in a call: another worker repeats the call with the same key, and the attempt does not count', async function () {
    this.timeout(90_000)
    for (const child of children.splice(0)) if (child.exitCode === null && !child.killed) await kill(child)
    const first = await startWorker()
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const id = await queueRun(db, organizationId, {
      nodes: [
        { id: 'post', type: 'api_request', config: { method: 'POST', url }, retry: { max_attempts: 1 } },
      ],
      outputs: { ok: '{{ nodes.post.output.body.ok }}' },
    })
    await came
    await kill(first)
    hang = false
    await startWorker()
    const run = await untilRun(db, id, undefined, 60_000)
    assert.deepEqual([run.status, run.outputs], ['completed', { ok: true }])
    assert.deepEqual(calls, [`${id}:post`, `${id}:post`])
    assert.equal((await db.system('run_nodes').where({ run_id: id }).first()).attempt, 1)
  })
})
