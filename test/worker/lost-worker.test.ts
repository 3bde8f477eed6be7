import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, Connection } from '@temporalio/client'
import pg from 'pg'
import { getRunNodes } from '../../db/runs/views.ts'
import { untilBlocked } from '../support/blocked.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { untilHeartbeats } from '../support/heartbeats.ts'
import { startProcess } from '../support/process.ts'
import { until } from '../support/until.ts'
import { queueRun, untilRun } from '../support/worker.ts'

/**
 * A worker process, killed with SIGKILL while it is in a segment of one run and in a call of another. Both wait for the
 * same timeouts of Temporal, of ten seconds.
 */
describe('a killed worker', () => {
  let db: TestDatabase
  let organizationId: string
  let server: Server
  const calls: (string | undefined)[] = []
  let contactsAtKill: number
  let inSegment: string
  let inCall: string
  let second: ChildProcess
  let connection: Connection
  let client: Client
  /** Answers the call that hangs. */
  let answer = () => {}
  let hang = true
  const taskQueue = `test-${randomUUID()}`
  const children: ChildProcess[] = []

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    connection = await Connection.connect({ address: process.env.TEST_TEMPORAL_ADDRESS! })
    client = new Client({ connection })
    let arrived = () => {}
    server = createServer((request, response) => {
      calls.push(request.headers['idempotency-key'] as string | undefined)
      arrived()
      answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
      if (!hang) answer()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const first = await startWorker()
    const came = new Promise<void>((resolve) => {
      arrived = resolve
    })
    inCall = await queueCall()
    await came
    // The segment blocks on this lock after the effect of its first node, before it commits.
    const blocker = new pg.Client({ connectionString: db.url })
    await blocker.connect()
    await blocker.query('begin')
    await blocker.query('lock table run_segments in access exclusive mode')
    inSegment = await queueRun(db, organizationId, {
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
    await untilBlocked(db)
    await kill(first)
    await blocker.query('rollback')
    await blocker.end()
    contactsAtKill = (await db.system('contacts')).length
    hang = false
    second = await startWorker()
  })
  after(async () => {
    for (const child of children) child.kill('SIGKILL')
    server?.closeAllConnections()
    server?.close()
    await connection?.close()
    await db?.drop()
  })

  function queueCall(): Promise<string> {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    return queueRun(db, organizationId, {
      nodes: [
        { id: 'post', type: 'api_request', config: { method: 'POST', url }, retry: { max_attempts: 1 } },
      ],
      outputs: { ok: '{{ nodes.post.output.body.ok }}' },
    })
  }

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

  it('in a segment: another worker repeats the segment, and its effects happen once', async () => {
    assert.equal(contactsAtKill, 0)
    const run = await untilRun(db, inSegment)
    assert.equal(run.status, 'completed', JSON.stringify(run.error))
    assert.equal((await db.system('contacts').where({ email: 'lost@example.com' })).length, 1)
    const raised = await db
      .system('events')
      .whereRaw('subject_id is distinct from ?', [inCall])
      .orderBy('name')
    assert.deepEqual(
      raised.map((event) => event.name),
      ['contact.created', 'invoice.paid', 'workflow.completed', 'workflow.started'],
    )
  })

  it('in a call: another worker repeats the call with the same key, and the attempt does not count', async () => {
    const run = await untilRun(db, inCall)
    assert.deepEqual([run.status, run.outputs], ['completed', { ok: true }])
    assert.deepEqual(calls, [`${inCall}:post`, `${inCall}:post`])
    const [node] = await db.tenant(organizationId, testActor, (tx) => getRunNodes(tx, inCall))
    assert.equal(node!.attempt, 1)
    // The lost one, and the one that repeated it.
    assert.deepEqual(
      node!.attempts.map((one) => [one.number, one.error?.code ?? null, one.response_status]),
      [
        [1, 'unreported', null],
        [1, null, 200],
      ],
    )
  })

  it('that was only frozen in a call goes on with it: the attempt that Temporal began again waits for it', async () => {
    hang = true
    calls.length = 0
    const id = await queueCall()
    await until(() => calls.length === 1, 'the call')
    second.kill('SIGSTOP')
    const workflow = client.workflow.getHandle(`run:${id}`)
    const attempt = async () => (await workflow.describe()).raw.pendingActivities?.[0]?.attempt ?? 0
    await until(async () => (await attempt()) > 1, 'another attempt')
    second.kill('SIGCONT')
    await untilHeartbeats(client, workflow.workflowId)
    answer()
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { ok: true }])
    assert.deepEqual(calls, [`${id}:post`])
    const [node] = await db.tenant(organizationId, testActor, (tx) => getRunNodes(tx, id))
    assert.deepEqual(
      node!.attempts.map((one) => [one.number, one.response_status]),
      [[1, 200]],
    )
  })
})
