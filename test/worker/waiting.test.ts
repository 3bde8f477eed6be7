import assert from 'node:assert/strict'
import type { HttpClient } from '../../activities/http/client.ts'
import { cancelRun } from '../../db/runs/moves/ends.ts'
import { Sweep } from '../../worker/sweep.ts'
import type { NodeSpec } from '../../workflows/language/definition.ts'
import { NodeError } from '../../workflows/language/node-error.ts'
import { createOrganization, createTestDatabase, type TestDatabase, testActor } from '../support/database.ts'
import { httpResponse } from '../support/http-response.ts'
import { call, delay, edge, set } from '../support/nodes.ts'
import { until } from '../support/until.ts'
import {
  historyOf,
  nodeStatuses,
  queueRun,
  startWorker,
  type TestWorker,
  testLog,
  untilRun,
} from '../support/worker.ts'

describe('runs that wait', () => {
  let db: TestDatabase
  let worker: TestWorker
  let organizationId: string
  let calls: string[] = []
  let answer: HttpClient['call']
  const http: HttpClient['call'] = (request, options) => {
    calls.push(request.headers?.['Idempotency-Key'] ?? '')
    return answer(request, options)
  }
  const nodes = (id: string) => nodeStatuses(db, id)

  before(async () => {
    db = await createTestDatabase()
    organizationId = await createOrganization(db)
    worker = await startWorker(db, { http })
  })
  beforeEach(() => {
    calls = []
    answer = async () => httpResponse({ body: { n: 1 } })
  })
  after(async () => {
    await worker?.stop()
    await db?.drop()
  })

  it('continue after a delay, and not before', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [delay('pause', '300ms'), set('then')],
      edges: [edge('pause', 'then')],
    })
    await untilRun(db, id, ['running'])
    await untilRun(db, id)
    const [pause, then] = await db.system('run_nodes').where({ run_id: id }).orderBy('position')
    assert.ok(then.started_at.getTime() - pause.started_at.getTime() >= 300)
  })

  it('run branches in parallel and join them', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [
        set('start'),
        delay('left', '50ms'),
        call('right'),
        set('join', '{{ nodes.right.output.status }}'),
      ],
      edges: [edge('start', 'left'), edge('start', 'right'), edge('left', 'join'), edge('right', 'join')],
      outputs: { status: '{{ nodes.join.output.value }}' },
    })
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { status: 200 }])
  })

  it('skip the branch that a condition does not take, with all nodes that only it reaches', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [
        { id: 'if', type: 'condition', config: { conditions: [{ left: 1, operator: 'eq', right: 2 }] } },
        set('yes'),
        set('after_yes'),
        set('no'),
        set('join'),
      ],
      edges: [
        edge('if', 'yes', 'true'),
        edge('yes', 'after_yes'),
        edge('after_yes', 'join'),
        edge('if', 'no', 'false'),
        edge('no', 'join'),
      ],
      outputs: { yes: '{{ nodes.yes.output.value }}', no: '{{ nodes.no.output.value }}' },
    })
    const run = await untilRun(db, id)
    assert.deepEqual([run.status, run.outputs], ['completed', { yes: null, no: 'no' }])
    assert.deepEqual(await nodes(id), {
      if: 'completed',
      yes: 'skipped',
      after_yes: 'skipped',
      no: 'completed',
      join: 'completed',
    })
  })

  it('wait until a time; one that has passed needs no timer, and a bad one takes the error handle', async () => {
    const until = new Date(Date.now() + 1_500).toISOString()
    const waitUntil = (id: string, time: string): NodeSpec => ({
      id,
      type: 'wait_until',
      config: { until: time },
    })
    const id = await queueRun(
      db,
      organizationId,
      {
        nodes: [
          waitUntil('past', '2020-01-01'),
          waitUntil('pause', '{{ inputs.until }}'),
          waitUntil('bad', '{{ inputs.bad }}'),
          set('sorry', '{{ nodes.bad.error.message }}'),
        ],
        edges: [edge('past', 'pause'), edge('pause', 'bad'), edge('bad', 'sorry', 'error')],
        outputs: { why: '{{ nodes.sorry.output.value }}' },
      },
      { until, bad: 'next week' },
    )
    const { status, outputs } = await untilRun(db, id)
    assert.equal(status, 'completed')
    assert.match(String(outputs?.why), /until must be a time such as .* but is "next week"/)
    const rows = await db.system('run_nodes').where({ run_id: id }).orderBy('position')
    const [past, pause, bad] = rows
    assert.deepEqual([past.wait_until, pause.wait_until.toISOString()], [null, until])
    assert.ok(bad.started_at.toISOString() >= until)
    const events = await historyOf(worker.client, `run:${id}`)
    const timers = events.filter((event) => event.timerStartedEventAttributes)
    assert.equal(timers.length, 1)
  })

  it('start a node with `join: any` at the first branch, once, and wait for the others', async () => {
    const id = await queueRun(db, organizationId, {
      nodes: [
        set('start'),
        delay('slow', '500ms'),
        call('fast'),
        { ...set('first'), join: 'any' },
        call('after'),
        set('late'),
        { ...set('all'), join: 'all' },
      ],
      edges: [
        edge('start', 'slow'),
        edge('start', 'fast'),
        edge('slow', 'first'),
        edge('fast', 'first'),
        edge('first', 'after'),
        edge('slow', 'late'),
        edge('late', 'all'),
        edge('after', 'all'),
      ],
    })
    assert.equal((await untilRun(db, id)).status, 'completed')
    assert.deepEqual(calls, [`${id}:fast`, `${id}:after`], 'each once')
    const rows = await db.system('run_nodes').where({ run_id: id })
    const row = (node: string) => rows.find(({ node_id }) => node_id === node)
    assert.ok(row('first').ended_at < row('slow').ended_at, 'before the slow branch')
    assert.ok(row('all').started_at >= row('late').ended_at, 'after both')
    assert.ok(rows.every(({ status }) => status === 'completed'))
  })

  it('retry an external node with the same idempotency key', async () => {
    answer = async () => httpResponse({ status: calls.length < 3 ? 503 : 201 })
    const id = await queueRun(db, organizationId, {
      nodes: [
        call('post', { retry: { max_attempts: 3, initial_interval: '10ms' } as NodeSpec['retry'] & object }),
      ],
    })
    const run = await untilRun(db, id)
    assert.equal(run.status, 'completed')
    assert.deepEqual(calls, Array(3).fill(`${id}:post`))
    assert.equal((await db.system('run_nodes').where({ run_id: id }).first()).attempt, 3)
  })

  it('take the error handle after the last attempt, even without an edge there; fail without a handle', async () => {
    answer = async () => {
      throw new NodeError('connection_refused', 'Nobody there.', { retryable: true })
    }
    const post = call('post', { retry: { max_attempts: 1 } })
    const handled = await queueRun(db, organizationId, {
      nodes: [post, set('sorry', '{{ nodes.post.error.code }}')],
      edges: [edge('post', 'sorry', 'error')],
      outputs: { why: '{{ nodes.sorry.output.value }}' },
    })
    const unhandled = await queueRun(db, organizationId, { nodes: [post] })
    const led = await queueRun(db, organizationId, {
      nodes: [call('post', { retry: { max_attempts: 1 }, on_error: 'end' }), set('next', 'reached')],
      edges: [edge('post', 'next')],
      outputs: { why: '{{ nodes.post.error.code }}', next: '{{ nodes.next.status }}' },
    })
    assert.deepEqual((await untilRun(db, handled)).outputs, { why: 'connection_refused' })
    const ended = await untilRun(db, led)
    assert.deepEqual(
      [ended.status, ended.outputs],
      ['completed', { why: 'connection_refused', next: 'skipped' }],
    )
    const failed = await untilRun(db, unhandled)
    assert.deepEqual(
      [failed.status, failed.error],
      ['failed', { code: 'connection_refused', message: 'Nobody there.', node_id: 'post' }],
    )
  })

  it('are cancelled while they wait, and so is their timer', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('long', '1h')] })
    await worker.client.workflow
      .getHandle(`run:${id}`)
      .describe()
      .catch(() => {})
    await until(async () => (await db.system('runs').where({ id }).first()).sleeps_until !== null)
    await db.tenant(organizationId, testActor, (tx) => cancelRun(tx, id))
    assert.equal((await untilRun(db, id)).status, 'cancelled')
    assert.deepEqual(await nodes(id), { long: 'cancelled' })
    await assert.rejects(worker.client.workflow.getHandle(`run:${id}`).result())
    assert.equal((await worker.client.workflow.getHandle(`run:${id}`).describe()).status.name, 'CANCELLED')
  })

  it('are recorded as terminated after an operator terminated them in the Temporal UI', async () => {
    const id = await queueRun(db, organizationId, { nodes: [delay('long', '1h')] })
    await until(async () => (await db.system('runs').where({ id }).first()).sleeps_until !== null)
    await worker.client.workflow.getHandle(`run:${id}`).terminate()
    await new Sweep({ db, client: worker.client, taskQueue: worker.taskQueue, log: testLog }).once(
      '0 seconds',
    )
    assert.equal((await untilRun(db, id)).status, 'terminated')
    assert.deepEqual(await nodes(id), { long: 'cancelled' })
    const raised = await db.system('events').where({ subject_id: id, name: 'workflow.failed' })
    assert.deepEqual(raised, [])
  })

  it('hold runs above the concurrency limit of their workflow', async () => {
    const definition = { nodes: [delay('a', '300ms')], settings: { concurrency: 1 } }
    const first = await queueRun(db, organizationId, definition)
    const { workflow_id, workflow_version, workflow_name } = await db
      .system('runs')
      .where({ id: first })
      .first()
    const { CHAIN_START, createRun } = await import('../../db/runs/runs.ts')
    const second = await db.tenant(organizationId, testActor, (tx) =>
      createRun(tx, {
        workflow: { id: workflow_id, version: workflow_version, name: workflow_name },
        trigger: { type: 'api' },
        inputs: {},
        chain: CHAIN_START,
      }),
    )
    await untilRun(db, second)
    const rows = await db.system('runs').whereIn('id', [first, second]).orderBy('id')
    assert.ok(rows[1].started_at >= rows[0].ended_at)
  })
})
